package place

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/linux/kernel"
)

// fixture opens a host of files, and its group x.
func fixture(t *testing.T, version cgroupfs.Version, files map[string]string) cgroupfs.Group {
	t.Helper()
	return cgrouptest.New(t, version, files).Group("/x")
}

func TestKernelWrites(t *testing.T) {
	v1 := fixture(t, cgroupfs.V1, nil)
	without := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/cgroup.controllers": "io pids\n"})
	v2 := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/cgroup.controllers": "io memory\n",
		"sys/fs/cgroup/cgroup.subtree_control": "io memory\n", "sys/fs/cgroup/x/cgroup.controllers": "io memory\n"})
	notEnabled := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/cgroup.controllers": "io memory\n",
		"sys/fs/cgroup/cgroup.subtree_control": "io\n", "sys/fs/cgroup/x/cgroup.controllers": "io\n"})
	ext4 := &blkdev.Mount{FSType: "ext4", SuperOptions: "rw"}
	journal := &blkdev.Mount{FSType: "ext4", SuperOptions: "rw,data=journal"}
	old, new := kernel.Release{Major: 6, Minor: 1}, kernel.Release{Major: 6, Minor: 4}
	for _, c := range []struct {
		name    string
		group   cgroupfs.Group
		fs      *blkdev.Mount
		release kernel.Release
		holds   string // direct, sync, buffered
		why     string
	}{
		{"v1", v1, ext4, new, "ds", "cgroup v1 charges writeback to the root group"},
		{"v1's root", v1.Hierarchy().Root(), ext4, new, "dsb", ""},
		{"v2 without memory", without, ext4, new, "ds", "the memory controller is not on the same hierarchy as io"},
		{"v2, memory not enabled", notEnabled, ext4, new, "dsb", ""},
		{"v1, ext4 with data=journal", v1, journal, old, "", "data=journal"},
		{"ext4", v2, ext4, new, "dsb", ""},
		{"ext4, data=journal", v2, journal, old, "", "data=journal"},
		{"ext4, data=journal, of a kernel that is not known", v2, journal, kernel.Release{}, "", "data=journal"},
		{"ext4, data=journal, later", v2, journal, new, "s", "data=journal"},
		{"ext4, data=ordered", v2, &blkdev.Mount{FSType: "ext4", SuperOptions: "rw,data=ordered"}, new, "dsb", ""},
		{"xfs with dax", v2, &blkdev.Mount{FSType: "xfs", SuperOptions: "rw,dax=always"}, new, "", "persistent memory"},
		{"v1's root, with dax", v1.Hierarchy().Root(), &blkdev.Mount{FSType: "xfs", SuperOptions: "rw,dax"}, new, "", "persistent memory"},
		{"xfs without dax", v2, &blkdev.Mount{FSType: "xfs", SuperOptions: "rw,dax=never"}, new, "dsb", ""},
		{"xfs", v2, &blkdev.Mount{FSType: "xfs"}, new, "dsb", ""},
		{"btrfs", v2, &blkdev.Mount{FSType: "btrfs"}, new, "dsb", ""},
		{"vfat", v2, &blkdev.Mount{FSType: "vfat"}, new, "ds", "vfat has no cgroup writeback"},
		{"a device", v2, nil, new, "dsb", ""},
	} {
		k := ControllerOf(c.group, c.release).Writes(c.fs)
		holds := ""
		for letter, is := range map[string]bool{"d": k.Direct, "s": k.Sync, "b": k.Buffered} {
			if is {
				holds += letter
			}
		}
		if len(holds) != len(c.holds) || strings.Trim(holds, c.holds) != "" || !strings.Contains(k.Why, c.why) || (k.Why == "") != (c.why == "") {
			t.Errorf("%s: %+v, want %q, %q", c.name, k, c.holds, c.why)
		}
	}
}
