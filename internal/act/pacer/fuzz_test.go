package pacer

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// FuzzNote: a guard learns exactly what the pacer says, whatever a file is called and however
// the pipe cuts it.
func FuzzNote(f *testing.F) {
	f.Add("/sys/fs/cgroup/freezer/a\tb \"c\"\nd/freezer.state", "THAWED", 5)
	f.Add("", "", 0)
	f.Fuzz(func(t *testing.T, file, line string, cut int) {
		if line != "THAWED" && line != "0" {
			line = "0" // what the pacer writes: see ThawWrite
		}
		text := []byte(strconv.Quote(file) + " " + line + "\n")
		cut = max(0, min(cut, len(text)))
		held := map[string]string{"/other": "0"}
		if rest := note(held, append(note(held, text[:cut:cut]), text[cut:]...)); len(rest) != 0 {
			t.Errorf("%q is left", rest)
		}
		if held[file] != line && isWhole(file) {
			t.Errorf("%q: %q", file, held)
		}
		note(held, []byte(strconv.Quote(file)+"\n"))
		if _, is := held[file]; is && isWhole(file) || file != "/other" && held["/other"] != "0" {
			t.Errorf("after %q has gone: %q", file, held)
		}
	})
}

// isWhole reports whether quoting keeps a name.
func isWhole(name string) bool {
	again, err := strconv.Unquote(strconv.Quote(name))
	return err == nil && again == name
}

// FuzzGarbage: what no pacer has said is passed over.
func FuzzGarbage(f *testing.F) {
	f.Add([]byte("\"/x\" 0\n\n\"y\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		held := map[string]string{}
		if rest := note(held, text); len(rest) > len(text) || len(held) > len(text) {
			t.Errorf("%d bytes say %d", len(text), len(held))
		}
	})
}

// FuzzAsk: of any question a job that the pacer takes has a limit, a device and a group.
func FuzzAsk(f *testing.F) {
	f.Add([]byte(`{"add":{"limited":{"path":"/x"},"devices":["8:0"],"wbps":5}}`))
	f.Add([]byte(`{"remove":{"path":""},"seen":{"path":"/"}}`))
	f.Fuzz(func(t *testing.T, question []byte) {
		var q ask
		if json.Unmarshal(question, &q) != nil || q.Add == nil || q.Add.check() != nil {
			return
		}
		if q.Add.WBPS == 0 || len(q.Add.Devices) == 0 || q.Add.Limited.Path == "" {
			t.Errorf("%+v", *q.Add)
		}
	})
}

// FuzzJob: a record of a paced group leads to a group of a hierarchy, or to nothing.
func FuzzJob(f *testing.F) {
	f.Add([]byte(`{"limited":{"path":"/x"},"devices":["8:0"],"wbps":5}`))
	f.Add([]byte(`{"limited":{"controller":"blkio","path":"/../../etc"},"wbps":-1}`))
	f.Add([]byte(`{"limited":{"path":"x\u0000"}}`))
	fs := cgrouptest.New(f, cgroupfs.V2, map[string]string{"x/io.max": ""}).FS
	f.Fuzz(func(t *testing.T, data []byte) {
		var j Job
		if json.Unmarshal(data, &j) != nil {
			return
		}
		g, err := j.Limited.Find(fs)
		if err == nil && (strings.Contains(g.Path()+"/", "/../") || !strings.HasPrefix(g.Path(), "/")) {
			t.Errorf("%q is group %q", data, g.Path())
		}
		_ = j.check()
	})
}
