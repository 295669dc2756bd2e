package tracer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openedAs is a file of this process as the kernel side tells it.
func openedAs(t *testing.T, f *os.File) opened {
	t.Helper()
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_INO, &st); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(f.Name())
	return opened{tgid: uint32(os.Getpid()), device: st.Dev_major<<20 | st.Dev_minor, inode: st.Ino, name: name[:min(len(name), nameMost)]}
}

func create(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestPaths(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Two of the same name, and one whose name the kernel side cuts off.
	one, other := create(t, filepath.Join(dir, "data")), create(t, filepath.Join(mkdir(t, dir, "sub"), "data"))
	long := create(t, filepath.Join(dir, strings.Repeat("n", 100)))
	called := create(t, filepath.Join(dir, "x (deleted)"))
	for _, f := range []*os.File{one, other, long, called} {
		for _, fd := range []int{-1, int(f.Fd()), int(one.Fd())} {
			if got := newPaths().find(openedAs(t, f), fd); got != f.Name() {
				t.Errorf("found %s with descriptor %d, want %s", got, fd, f.Name())
			}
		}
	}
	// Numbers as btrfs and overlayfs have them: the name must do.
	far := openedAs(t, long)
	far.device = 42 // without a major number
	if got := newPaths().find(far, -1); got != long.Name() {
		t.Errorf("found %s by its name, want %s", got, long.Name())
	}
	if err := os.Remove(long.Name()); err != nil {
		t.Fatal(err)
	}
	if got := newPaths().find(openedAs(t, long), -1); got != long.Name()+" (deleted)" {
		t.Errorf("a deleted file is found as %s", got)
	}
}

func TestPathsNotFound(t *testing.T) {
	f := create(t, filepath.Join(t.TempDir(), "data"))
	p := newPaths()
	closed := openedAs(t, f)
	closed.name = "other"
	gone := openedAs(t, f)
	gone.tgid = 1 << 30
	namesake := openedAs(t, f) // another file of that name, on a disk
	namesake.device, namesake.inode = 8<<20|1, namesake.inode+1
	for _, o := range []opened{closed, gone, namesake, {name: "bare"}, {}} {
		if got := p.find(o, -1); got != o.name {
			t.Errorf("%v is found as %s", o, got)
		}
	}
}

// A path that was found stays, when the process has closed the file.
func TestPathsAreRemembered(t *testing.T) {
	f := create(t, filepath.Join(t.TempDir(), "data"))
	p, o := newPaths(), openedAs(t, f)
	before := p.find(o, -1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if after := p.find(o, -1); !strings.HasPrefix(before, "/") || after != before {
		t.Errorf("%s, then %s", before, after)
	}
	for i := range pathsMost + 10 {
		p.find(opened{tgid: 1 << 30, inode: uint64(i + 1), name: "x"}, -1)
	}
	if n := len(p.known); n > pathsMost {
		t.Errorf("%d paths are remembered, %d are the most", n, pathsMost)
	}
}

func mkdir(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
