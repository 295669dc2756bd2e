package cgroupfs

import (
	"os"
	"path/filepath"
	"testing"
)

// Lines of mountinfo, as distributions mount the hierarchies.
const (
	mountV2     = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
	mountBlkio  = "31 25 0:31 / /sys/fs/cgroup/blkio rw,nosuid,nodev,noexec,relatime shared:15 - cgroup cgroup rw,blkio\n"
	mountMemory = "32 25 0:32 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:16 - cgroup cgroup rw,memory\n"
	mountNamed  = "33 25 0:33 / /sys/fs/cgroup/systemd rw,nosuid,nodev,noexec,relatime shared:10 - cgroup cgroup rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd\n"
	mountHybrid = "34 25 0:34 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountTmpfs  = "25 23 0:25 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:8 - tmpfs tmpfs ro,size=4096k,mode=755\n"
)

// newFS makes a host of files and opens it. A name that ends in a slash is an empty
// directory.
func newFS(t testing.TB, files map[string]string) *FS {
	t.Helper()
	fs, err := Open(newRoot(t, files))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	return fs
}

func newRoot(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if name[len(name)-1] == '/' {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// v2 is a host with cgroup v2; its files are named below the hierarchy's root.
func v2(t testing.TB, files map[string]string) *FS {
	all := map[string]string{"proc/1/mountinfo": mountV2, "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n"}
	for name, text := range files {
		all["sys/fs/cgroup/"+name] = text
	}
	return newFS(t, all)
}

// v1 is a host with cgroup v1; its files are named below blkio's root.
func v1(t testing.TB, files map[string]string) *FS {
	all := map[string]string{"proc/1/mountinfo": mountTmpfs + mountBlkio + mountMemory + mountNamed,
		"sys/fs/cgroup/blkio/": "", "sys/fs/cgroup/memory/": "", "sys/fs/cgroup/systemd/": ""}
	for name, text := range files {
		all["sys/fs/cgroup/blkio/"+name] = text
	}
	return newFS(t, all)
}

func groupOf(t testing.TB, fs *FS, path string) Group {
	t.Helper()
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
