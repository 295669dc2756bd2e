package prove

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Links in a target's root stay in it, and a directory stays the one that was opened.
func TestRootOpen(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"root/data", "data"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"absolute": "/data", "up": "../../../data", "magic": "/proc/self/fd/0", "out": top} {
		if err := os.Symlink(to, filepath.Join(top, "root", link)); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.Open(filepath.Join(top, "root"))
	if err != nil {
		t.Fatal(err)
	}
	root := Root{dir}
	defer root.Close()
	want, err := os.Stat(filepath.Join(top, "root/data"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data", "/data", "absolute", "up", "/../data"} {
		f, err := root.Open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := f.Stat()
		if err != nil || !os.SameFile(got, want) {
			t.Errorf("%s leads to another directory (%v)", name, err)
		}
		if _, path, err := root.Where(f); err != nil || path != "/data" {
			t.Errorf("%s is at %s, %v", name, path, err)
		}
		f.Close()
	}
	for _, name := range []string{"magic", "out", "none"} {
		if f, err := root.Open(name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	if root, err := OpenRoot(1 << 30); err == nil {
		root.Close()
		t.Error("a root of no process")
	}
}

func TestPlaceByDescriptor(t *testing.T) {
	dir := t.TempDir()
	root, err := OpenRoot(0)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, err := root.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	p := Place{Dir: "/elsewhere", Folder: f}
	if err := unix.Stat(p.folder(), &st); err != nil || !Writable(f) {
		t.Error(err)
	}
	if p.folder() == p.Dir || (Place{Dir: dir}).folder() != dir {
		t.Errorf("%s, %s", p.folder(), p.Dir)
	}
}
