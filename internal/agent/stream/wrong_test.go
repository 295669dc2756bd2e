package stream

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Whatever answers at the socket, weir top reads by itself within seconds, and says why.
func TestWrongWeirds(t *testing.T) {
	frame := func(text string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: top\ndata: " + text + "\n\n"
	}
	group := `{"cgroup":"/a","devices":[]}`
	head := `"schema":"weir.top.event/1","cgroup_version":2,"window_seconds":1`
	for name, c := range map[string]struct{ says, why string }{
		"hangs":                {"", "weird does not answer"},
		"hangs in headers":     {"HTTP/1.1 200 OK\r\nA: ", "weird does not answer"},
		"hangs after headers":  {"HTTP/1.1 200 OK\r\n\r\n: hello\n\n", "weird does not answer"},
		"hangs in a reading":   {frame(`{` + head + `,"more":true,"groups":[]}`), "weird does not answer"},
		"garbage":              {"\x00\xff\xfe garbage\n\n\n", "cannot be read"},
		"no JSON":              {frame("{]"), "cannot be read"},
		"no object":            {frame("7"), "cannot be read"},
		"another type":         {frame(`{` + head + `,"groups":[{"cgroup":7}]}`), "cannot be read"},
		"deep":                 {frame(strings.Repeat("[", 20000)), "more than 16 lists within each other"},
		"no end of a list":     {frame("]]]{,,,"), "cannot be read"},
		"no UTF-8":             {frame("{\"x\":\"\xff\"}"), "what weird says cannot be read: it is not UTF-8"},
		"newer":                {frame(`{"schema":"weir.top.event/2"}`), `another version (it speaks "weir.top.event/2")`},
		"older":                {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", "another version"},
		"busy":                 {"HTTP/1.1 503 Busy\r\nContent-Length: 26\r\n\r\n" + `{"error":"16 clients here"}`[:26], "status 503"},
		"redirects":            {"HTTP/1.1 302 Found\r\nLocation: http://weird/x\r\nContent-Length: 0\r\n\r\n", "status 302"},
		"trouble":              {"HTTP/1.1 200 OK\r\n\r\nevent: trouble\ndata: {\"error\":\"no cgroups\"}\n\n", "weird cannot read the groups: no cgroups"},
		"cgroup v9":            {frame(`{"schema":"weir.top.event/1","cgroup_version":9}`), "cannot be read"},
		"a large group":        {frame(`{` + head + `,"groups":[{"cgroup":"/"` + strings.Repeat(`,"x":"`+strings.Repeat("x", textMost/2)+`"`, 2*groupMost/textMost) + `}]}`), "bytes of one group"},
		"many groups":          {frame(`{`+head+`,"more":true,"groups":[`+manyGroups(0, groupsMost)+`]}`) + "event: top\ndata: {" + head + `,"groups":[` + manyGroups(groupsMost, groupsMost+1) + "]}\n\n", "more than 20000 groups, or"},
		"a long line":          {frame(strings.Repeat("x", eventMost+1)), "a line of more than 8 MB, which no weird of this version does; update weir and weird together"},
		"ends in an event":     {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 26\r\n\r\nevent: top\ndata: {\"schema\"", "weird has ended in the middle of an event, so it was stopped or killed; see why with systemctl status weird"},
		"no chunk":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1a\r\nevent: top\ndata: {\"schema\"xx\r\n", "cannot be read: malformed chunked encoding"},
		"many disks":           {frame(`{` + head + `,"disks":[` + strings.Repeat("{},", listMost) + `{}]}`), "weird tells of more than 20000 entries of a list in one event, and no more are read"},
		"many groups are gone": {frame(`{` + head + `,"gone":[` + strings.Repeat(`"",`, listMost) + `""]}`), "weird tells of more than 20000 entries of a list in one event, and no more are read"},
		"many devices":         {frame(`{` + head + `,"groups":[{"devices":[` + strings.Repeat("{},", withinMost) + `{}]}]}`), "more than 4096 entries of a list within a list"},
		"many in all":          {frame(`{` + head + `,"groups":[` + strings.Repeat(`{"devices":[{},{},{},{}]},`, entriesMost/4) + `{"devices":[{}]}]}`), "more than 32768 entries of lists within lists"},
		"many fields":          {frame(`{` + head + strings.Repeat(`,"x":1`, 256) + `}`), "more than 256 fields"},
		"a long text":          {frame(`{` + head + `,"unreadable":"` + strings.Repeat("x", textMost) + `"}`), "bytes of a text"},
		"a long figure":        {frame(`{` + head + `,"watched":` + strings.Repeat("7", textMost+2) + `}`), "bytes of a figure"},
		"much trouble":         {"HTTP/1.1 200 OK\r\n\r\nevent: trouble\ndata: {\"error\":\"" + strings.Repeat(`\u001b[2J`, 100000) + "\"}\n\n", `weird cannot read the groups: \x1b[2J\x1b[2J`},
		"trouble of nothing":   {"HTTP/1.1 200 OK\r\n\r\nevent: trouble\ndata: x\n\n", "does not say why; see its messages with journalctl"},
		"refuses at length":    {"HTTP/1.1 503 Busy\r\nContent-Length: 45012\r\n\r\n{\"error\":\"" + strings.Repeat(`\u001b[2J`, 5000) + "\"}", `weird answers: \x1b[2J`},
		"ends":                 {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n: hello\n\n", "weird has ended"},
		"no version":           {frame(`{"groups":[` + group + `]}`), "another version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o := newWeird(t), &own{}
			w.raw(c.says)
			if c.why != errSilent.Error() { // what it says is read, however long that takes beside the others
				w.patience = patience
			}
			began := time.Now()
			v := until(t, w.source(o), func(Reading) bool { return true })
			if !fromSelf(v) || !strings.Contains(v.Source.Why, c.why) {
				t.Errorf("%+v, want %q", v.Source, c.why)
			}
			if len(v.Source.Why) > 1100 || strings.ContainsRune(v.Source.Why, '\x1b') {
				t.Errorf("%d bytes: %q", len(v.Source.Why), v.Source.Why)
			}
			if took := time.Since(began); took > patience/2 {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func manyGroups(first, end int) string {
	var all []string
	for i := first; i < end; i++ {
		all = append(all, fmt.Sprintf(`{"cgroup":"/%d"}`, i))
	}
	return strings.Join(all, ",")
}

// A path that leads to no socket is named, with the reason and what to do.
func TestWrongPaths(t *testing.T) {
	w, o := newWeird(t), &own{}
	if err := os.Symlink(w.socket, w.socket); err != nil {
		t.Fatal(err)
	}
	v := until(t, w.source(o), func(Reading) bool { return true })
	if want := "connect to " + w.socket + ": too many levels of symbolic links; see what is at this path with ls -l, remove it if it is not weird's, and restart weird"; !fromSelf(v) || v.Source.Why != want {
		t.Errorf("%+v, want %q", v.Source, want)
	}
	w.socket = filepath.Join("/dev/null", "read.sock")
	if v := until(t, w.source(o), func(Reading) bool { return true }); !strings.HasPrefix(v.Source.Why, "connect to /dev/null/read.sock: not a directory; ") {
		t.Errorf("%+v", v.Source)
	}
	w.socket = "/" + strings.Repeat("x", 200)
	if v := until(t, w.source(o), func(Reading) bool { return true }); !strings.Contains(v.Source.Why, ": invalid argument; ") {
		t.Errorf("%+v", v.Source)
	}
}
