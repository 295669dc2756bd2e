package prove

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
)

// groupIn makes a host of cgroup v2 with such files, and returns a group of it.
func groupIn(t *testing.T, path string, files map[string]string) cgroupfs.Group {
	t.Helper()
	root := t.TempDir()
	all := map[string]string{"proc/1/mountinfo": "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "sys/fs/cgroup/cgroup.controllers": "io memory\n"}
	for name, text := range files {
		all["sys/fs/cgroup/"+name] = text
	}
	for name, text := range all {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := cgroupfs.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	h, err := fs.IO(0)
	if err != nil {
		t.Fatal(err)
	}
	g, err := h.Group(path)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestSpare(t *testing.T) {
	tests := []Test{
		{Path: load.Direct, Key: limit.WBPS, Size: 16 * mega},
		{Path: load.Buffered, Key: limit.WBPS, Size: 16 * mega},
		{Path: load.Mapped, Key: limit.WBPS, Size: 16 * mega},
		{Path: load.Mapped, Key: limit.RBPS, Size: 16 * mega},
	}
	bounded := map[string]string{"a/b/memory.max": "max\n", "a/b/memory.high": "max\n", "a/memory.max": "67108864\n", "a/memory.high": "max\n"}
	with := func(name, text string) map[string]string {
		files := map[string]string{name: text}
		for n, s := range bounded {
			files[n] = s
		}
		return files
	}
	for name, c := range map[string]struct {
		files map[string]string
		unit  string
		why   string // "": nothing is left out
	}{
		"no controller":  {map[string]string{"a/b/cgroup.procs": ""}, "x.service", ""},
		"no bound":       {map[string]string{"a/b/memory.max": "max\n", "a/b/memory.high": "max\n"}, "x.service", ""},
		"all or none":    {map[string]string{"a/b/cgroup.procs": "", "a/memory.oom.group": "1\n"}, "", "/a has memory.oom.group=1"},
		"room enough":    {with("a/memory.current", "1048576\n"), "", ""},
		"systemd's":      {with("a/memory.current", "1048576\n"), "x.service", "stop x.service"},
		"full":           {with("a/memory.current", "67108864\n"), "", "/a uses 67.1 MB"},
		"nearly so much": {with("a/memory.current", "16777217\n"), "", "/a uses 16.8 MB"},
		"just so much":   {with("a/memory.current", "16777216\n"), "", ""},
	} {
		g := groupIn(t, "/a/b", c.files)
		p := Place{Target: g, Inside: g, Unit: c.unit}
		kept, notes, err := p.Spare(tests)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		left := 4
		if c.why != "" {
			left = 2
		}
		if len(kept) != left || len(notes) != 4-left || !strings.Contains(strings.Join(notes, "\n"), c.why) {
			t.Errorf("%s: %d rows left, notes %q", name, len(kept), notes)
		}
	}
	if kept, notes, err := (Place{}).Spare(tests); len(kept) != 4 || len(notes) != 0 || err != nil {
		t.Errorf("a group that weir makes: %d rows, %q, %v", len(kept), notes, err)
	}
}
