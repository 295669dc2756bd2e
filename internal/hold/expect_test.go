package hold

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cgroupfs/cgrouptest"
)

// fixture opens a host of files, and its group x.
func fixture(t *testing.T, version cgroupfs.Version, files map[string]string) cgroupfs.Group {
	t.Helper()
	return cgrouptest.New(t, version, files).Group("/x")
}

func TestExpect(t *testing.T) {
	v1 := fixture(t, cgroupfs.V1, nil)
	without := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/cgroup.controllers": "io pids\n"})
	v2 := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/cgroup.controllers": "io memory\n",
		"sys/fs/cgroup/cgroup.subtree_control": "io memory\n", "sys/fs/cgroup/x/cgroup.controllers": "io memory\n"})
	notEnabled := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/cgroup.controllers": "io memory\n",
		"sys/fs/cgroup/cgroup.subtree_control": "io\n", "sys/fs/cgroup/x/cgroup.controllers": "io\n"})
	ext4 := &blkdev.Mount{FSType: "ext4", SuperOptions: "rw"}
	for _, c := range []struct {
		name  string
		group cgroupfs.Group
		fs    *blkdev.Mount
		why   string // empty: buffered writes are held
	}{
		{"v1", v1, ext4, "cgroup v1 charges writeback to the root group"},
		{"v2 without memory", without, ext4, "the memory controller is not on the hierarchy of io"},
		{"v2, memory not enabled", notEnabled, ext4, ""},
		{"v1, ext4 with data=journal", v1, &blkdev.Mount{FSType: "ext4", SuperOptions: "rw,data=journal"}, "data=journal"},
		{"ext4", v2, ext4, ""},
		{"ext4, data=journal", v2, &blkdev.Mount{FSType: "ext4", SuperOptions: "rw,data=journal"}, "data=journal"},
		{"ext4, data=ordered", v2, &blkdev.Mount{FSType: "ext4", SuperOptions: "rw,data=ordered"}, ""},
		{"xfs", v2, &blkdev.Mount{FSType: "xfs"}, ""},
		{"btrfs", v2, &blkdev.Mount{FSType: "btrfs"}, ""},
		{"vfat", v2, &blkdev.Mount{FSType: "vfat"}, "vfat has no cgroup writeback"},
		{"a device", v2, nil, ""},
	} {
		got := Expect(c.group, c.fs)
		if got.Buffered != (c.why == "") || got.Sync != (c.why != "data=journal") || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %+v, want %q", c.name, got, c.why)
		}
		begins := "writes NOT held"
		switch {
		case got.Buffered:
			begins = "direct, synchronous and buffered writes held"
		case got.Sync:
			begins = "direct and synchronous writes held"
		}
		if line := got.Line(c.group.Hierarchy()); !strings.HasPrefix(line, begins) || !strings.Contains(line, c.why) {
			t.Errorf("%s: %q, want %q", c.name, line, begins)
		}
	}
}
