package hold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
)

const (
	v1Mount = "31 25 0:31 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
	v2Mount = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
)

// fixture opens a host of files, and a group of its io hierarchy.
func fixture(t *testing.T, group string, files map[string]string) cgroupfs.Group {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := cgroupfs.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	h, err := fs.IO(0)
	if err != nil {
		t.Fatal(err)
	}
	g, err := h.Group(group)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestExpect(t *testing.T) {
	v1 := fixture(t, "/x", map[string]string{"proc/1/mountinfo": v1Mount, "sys/fs/cgroup/blkio/tasks": ""})
	without := fixture(t, "/x", map[string]string{"proc/1/mountinfo": v2Mount, "sys/fs/cgroup/cgroup.controllers": "io pids\n"})
	v2 := fixture(t, "/x", map[string]string{"proc/1/mountinfo": v2Mount, "sys/fs/cgroup/cgroup.controllers": "io memory\n",
		"sys/fs/cgroup/cgroup.subtree_control": "io memory\n", "sys/fs/cgroup/x/cgroup.controllers": "io memory\n"})
	notEnabled := fixture(t, "/x", map[string]string{"proc/1/mountinfo": v2Mount, "sys/fs/cgroup/cgroup.controllers": "io memory\n",
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
