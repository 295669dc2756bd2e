package environ

import (
	"strings"
	"testing"
)

func TestParseCgroups(t *testing.T) {
	const (
		proc  = "21 1 0:20 / /proc rw shared:1 - proc proc rw\n"
		blkio = "30 25 0:28 / /cgroup/blkio rw - cgroup cgroup rw,blkio\n"
		mem   = "31 25 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		two   = "32 25 0:30 / /cgroup2 rw - cgroup2 cgroup2 rw\n"
	)
	for _, c := range []struct {
		name, in string
		want     Cgroups
	}{
		{"none", proc, Cgroups{}},
		{"v1", proc + blkio + mem, Cgroups{Mode: V1, Blkio: "/cgroup/blkio", Memory: "/sys/fs/cgroup/memory"}},
		{"v2", proc + two, Cgroups{Mode: V2, Unified: "/cgroup2"}},
		{"hybrid", blkio + two, Cgroups{Mode: Hybrid, Unified: "/cgroup2", Blkio: "/cgroup/blkio"}},
	} {
		got, err := parseCgroups(strings.NewReader(c.in))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got.Mode != c.want.Mode || got.Unified != c.want.Unified || got.Blkio != c.want.Blkio || got.Memory != c.want.Memory {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	if _, err := parseCgroups(strings.NewReader("broken\n")); err == nil {
		t.Error("a broken line was accepted")
	}
}
