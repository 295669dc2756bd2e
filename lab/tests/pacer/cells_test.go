package pacer_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// An owned group is one that somebody else has made, with a writer in it, on v1 or v2.
type owned struct {
	target  string // as weir names it
	join    string // puts a shell into it
	procs   string // its list of processes
	freezer string // the file that stops it, its owner's
	writer  *exec.Cmd
	file    string // what the writer writes, again and again
}

const pieces = 2048 // of 16 KiB

func newOwned(t *testing.T, e environ.Environ, dir, name string) owned {
	t.Helper()
	group, freezer := filepath.Join(e.Cgroups.Blkio, name), ""
	if e.Cgroups.Blkio == "" {
		group = filepath.Join(e.Cgroups.Unified, name)
		freezer = group
	} else {
		freezer = filepath.Join(freezerDir(t, e), name)
	}
	o := owned{target: "cgroup:/" + name, procs: group + "/cgroup.procs", file: filepath.Join(dir, "f")}
	lab.Cgroup(t, group)
	join := "echo $$ > " + o.procs
	if o.freezer = freezer + "/cgroup.freeze"; freezer != group {
		lab.Cgroup(t, freezer)
		join += "; echo $$ > " + freezer + "/cgroup.procs"
		o.freezer = freezer + "/freezer.state"
	}
	o.join = join
	o.writer = exec.Command("sh", "-c", join+"; while :; do "+fill(o.file, pieces*16384)+"; rm "+o.file+"; done")
	if err := o.writer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = o.writer.Process.Kill()
		_ = o.writer.Wait()
	})
	lab.Await(t, 20*time.Second, "the first write", func() bool { return size(o.file) > 0 })
	return o
}

// freezerDir is where v1's hierarchy of the freezer is mounted.
func freezerDir(t *testing.T, e environ.Environ) string {
	t.Helper()
	for _, dir := range e.Cgroups.Mounted1 {
		if strings.HasSuffix(dir, "freezer") {
			return dir
		}
	}
	t.Fatal("no hierarchy of the freezer")
	return ""
}

// stop is what its owner does to stop it, or to let it go on: docker pause.
func (o owned) stop(t *testing.T, stop bool) {
	t.Helper()
	line := map[bool]string{false: "0", true: "1"}[stop]
	if strings.HasSuffix(o.freezer, ".state") {
		line = map[bool]string{false: "THAWED", true: "FROZEN"}[stop]
	}
	if err := os.WriteFile(o.freezer, []byte(line), 0); err != nil {
		t.Fatal(err)
	}
}

// paced is its writer, as weir's pacer and its owner pause it.
func (o owned) paced() lab.PacedWriter {
	limited := pacer.Place{Path: o.target[len("cgroup:"):]}
	if strings.HasSuffix(o.freezer, ".state") {
		limited.Controller = "blkio"
	}
	return lab.PacedWriter{Limited: limited, Frozen: filepath.Dir(o.freezer), Mark: func() string { return fmt.Sprint(size(o.file)) }}
}

// asked says whether its owner has stopped it, by its own file.
func (o owned) asked(t *testing.T) bool {
	t.Helper()
	file := o.freezer
	if strings.HasSuffix(file, ".state") {
		file = filepath.Join(filepath.Dir(file), "freezer.self_freezing")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text)) == "1"
}

// children lists the groups in it.
func (o owned) children(t *testing.T) (found []string) {
	t.Helper()
	top := filepath.Dir(o.freezer)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != top {
			found = append(found, path)
		}
		return nil // a group goes meanwhile
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// weir pauses a group's processes without touching the owner's freezer file. So it never
// undoes docker pause, and a paused process writes nothing. After clear the processes are
// where they were.
func TestOwnersFreezerIsTheirs(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	o := newOwned(t, e, disk.Dir, "lab-owned")
	rate := lab.Scaled(e, 4<<20)
	if e.Cgroups.IOInV2 { // whose own limit holds back each removal of the file, until what is under way is written
		rate *= 4
	}
	weir(t, "set", o.target, "--write", fmt.Sprint(rate), "--on", disk.Dir, "--hold", "pacer")
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) {
		if o.asked(t) {
			t.Fatalf("%s says that weir has stopped it", o.freezer)
		}
	}
	pauses, w := lab.Times(t, "WEIR_PAUSES", 3), o.paced()
	var owes time.Duration
	for range pauses {
		o.stop(t, true)
		time.Sleep(100 * time.Millisecond) // a write that is under way ends
		before := size(o.file)
		time.Sleep(200 * time.Millisecond)
		if now := size(o.file); now != before || !o.asked(t) {
			t.Fatalf("paused, it wrote %d bytes; paused still: %v", now-before, o.asked(t))
		}
		o.stop(t, false)
		w.AwaitWrite(t, 5*time.Second, fmt.Sprint(before))
		time.Sleep(50 * time.Millisecond) // what it wrote at once is seen
		owes = max(owes, w.Owes(t))
	}
	t.Logf("%d pauses by its owner; for what it wrote after one it owed %s at most", pauses, owes)
	weir(t, "clear", o.target)
	lab.Await(t, 5*time.Second, "weir's groups to be gone", func() bool { return len(o.children(t)) == 0 })
}
