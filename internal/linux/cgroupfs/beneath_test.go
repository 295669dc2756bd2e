package cgroupfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What containers can make below a hierarchy must not lead out of it.
func TestNothingLeadsOutOfTheHierarchy(t *testing.T) {
	root := newRoot(t, map[string]string{"proc/1/mountinfo": mountV2, "sys/fs/cgroup/cgroup.controllers": "io\n",
		"sys/fs/cgroup/real/io.max": "", "secret/io.max": "8:0 rbps=1\n"})
	for link, target := range map[string]string{
		"sys/fs/cgroup/out":         "../../../secret",
		"sys/fs/cgroup/absolute":    filepath.Join(root, "secret"),
		"sys/fs/cgroup/inside":      "real",
		"sys/fs/cgroup/magic":       "/proc/self/root",
		"sys/fs/cgroup/real/io.max": "../../../../secret/io.max",
	} {
		path := filepath.Join(root, link)
		if err := errors.Join(os.RemoveAll(path), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	for _, path := range []string{"/out", "/absolute", "/inside", "/magic", "/magic/etc", "/real"} {
		rules, err := groupOf(t, fs, path).Rules()
		if !errors.Is(err, unix.ELOOP) {
			t.Errorf("Rules of %s = %v, %v; want ELOOP", path, rules, err)
		}
	}
}

func TestPathsThatLeaveAreRefused(t *testing.T) {
	h := v2(t, nil).Unified()
	for _, path := range []string{"..", "/..", "/../x", "/x/../../y", "/x/..", "/x\x00"} {
		if g, err := h.Group(path); err == nil {
			t.Errorf("Group(%q) = %s", path, g.Dir())
		}
	}
	for path, want := range map[string]string{"": "/", "/": "/", "/x": "/x", "x//y/": "/x/y", "/./x": "/x", "/..x": "/..x", "/x\n": "/x\n"} {
		if g, err := h.Group(path); err != nil || g.Path() != want {
			t.Errorf("Group(%q) = %v, %v; want %q", path, g, err, want)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "a\x00", "a\nb", strings.Repeat("x", 256)} {
		if g, err := h.Root().Child(name); err == nil {
			t.Errorf("Child(%q) = %s", name, g.Dir())
		}
	}
	// Even a path that passed for one of Group's is stopped by the kernel.
	if _, err := h.open("../../../proc", unix.O_PATH); !errors.Is(err, unix.EXDEV) {
		t.Errorf("open ../../../proc: %v; want EXDEV", err)
	}
}

// A mount inside a cgroup tree is somebody else's.
func TestMountsOnTheWayAreRefused(t *testing.T) {
	dir, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &Hierarchy{MountPoint: "/", host: "/", dir: dir}
	defer unix.Close(dir)
	if _, err := h.open("proc/self", unix.O_PATH); !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.ELOOP) {
		t.Errorf("open proc/self below /: %v; want EXDEV", err)
	}
}

func FuzzGroupPath(f *testing.F) {
	for _, s := range []string{"/", "/system.slice/x", "..", "/a/../b", "a\x00b", "/" + strings.Repeat("x/", 300), "/docker/3f2a/inner"} {
		f.Add(s)
	}
	whole := &Hierarchy{Version: V2, MountPoint: "/c", MountRoot: "/", host: "/c"}
	part := &Hierarchy{Version: V2, MountPoint: "/c", MountRoot: "/docker/3f2a", host: "/c"}
	f.Fuzz(func(t *testing.T, path string) {
		for _, h := range []*Hierarchy{whole, part} {
			g, err := h.Group(path)
			if err != nil {
				continue
			}
			if !filepath.IsLocal(g.path) || g.Dir() != "/c" && !strings.HasPrefix(g.Dir(), "/c/") {
				t.Fatalf("Group(%q) leaves the tree: %s", path, g.Dir())
			}
			again, err := h.Group(g.Path())
			if err != nil || again != g {
				t.Fatalf("Group(%q) is %s, which is %v, %v", path, g.Path(), again, err)
			}
		}
	})
}
