package prove

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/look/load"
)

// groupIn makes a host of cgroup v2 with such files, and returns a group of it.
func groupIn(t *testing.T, path string, files map[string]string) cgroupfs.Group {
	t.Helper()
	all := map[string]string{cgrouptest.V2Dir + "/cgroup.controllers": "io memory\n"}
	for name, text := range files {
		all[cgrouptest.V2Dir+"/"+name] = text
	}
	return cgrouptest.New(t, cgroupfs.V2, all).Group(path)
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
		kept, omitted, err := p.Spare(tests)
		var notes []string
		for _, o := range omitted {
			notes = append(notes, o.String())
			if o.Do != fault.DropTarget || o.Key != limit.WBPS {
				t.Errorf("%s: %+v", name, o)
			}
		}
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
