package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A file in the place of a volume's own is another's, whatever its owner and mode are.
func TestAnotherFileIsNotTheVolumes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: weir accepts only files and directories that belong to root")
	}
	v := Volume{Name: "data", Image: filepath.Join(t.TempDir(), "data.img")}
	must(t, os.WriteFile(v.Image, []byte("mine"), 0o600))
	f, err := os.Open(v.Image)
	must(t, err)
	v.File, err = identify(int(f.Fd()))
	must(t, err)
	must(t, f.Close())
	if image, err := openImage(v); err != nil {
		t.Fatal(err)
	} else {
		must(t, image.Close())
	}
	old := v
	old.File.Generation = 0 // on record from before generations were
	if image, err := openImage(old); err != nil {
		t.Fatal(err)
	} else {
		must(t, image.Close())
	}
	must(t, os.Rename(v.Image, v.Image+".aside"))
	must(t, os.WriteFile(v.Image, []byte("another's"), 0o600))
	var other *OtherFileError
	var remedied *fault.Remedied
	if _, err := openImage(v); !errors.As(err, &other) || !errors.As(err, &remedied) || remedied.Remedy != (fault.Remedy{Do: fault.AcceptFile, Target: "data"}) {
		t.Errorf("openImage = %v", err)
	}
	must(t, acceptFile(&v))
	if image, err := openImage(v); err != nil {
		t.Fatal(err)
	} else {
		must(t, image.Close())
	}
}

func TestRootsAlone(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: weir accepts only files and directories that belong to root")
	}
	dir := t.TempDir()
	if err := rootsAlone(dir); err != nil {
		t.Error(err)
	}
	deep := filepath.Join(dir, "a/b")
	must(t, os.MkdirAll(deep, 0o755))
	for name, c := range map[string]struct {
		mode os.FileMode
		uid  int
		want string
	}{
		"another's":       {0o755, 1000, "does not belong to root"},
		"for the group":   {0o775, 0, "others than root"},
		"for all":         {0o757, 0, "others than root"},
		"as /tmp":         {0o777 | os.ModeSticky, 0, ""},
		"root's as usual": {0o755, 0, ""},
	} {
		must(t, os.Chown(filepath.Join(dir, "a"), c.uid, 0))
		must(t, os.Chmod(filepath.Join(dir, "a"), c.mode))
		if err := rootsAlone(deep); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// No directory is made, looked into or removed through a link that somebody put on the way.
func TestDirectoriesAreNotReachedThroughLinks(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "theirs/place"), 0o755))
	must(t, os.Symlink("theirs", filepath.Join(dir, "link")))
	if err := makeDir(filepath.Join(dir, "link/new")); !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("makeDir = %v", err)
	}
	if _, err := isEmpty(filepath.Join(dir, "link/place")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("isEmpty = %v", err)
	}
	if err := removeDir(Volume{Mount: filepath.Join(dir, "link/place"), MadeMount: true}); !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("removeDir = %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "theirs/place")); err != nil {
		t.Error(err)
	}
	must(t, makeDir(filepath.Join(dir, "x/y/z")))
	if empty, err := isEmpty(filepath.Join(dir, "x/y")); err != nil || empty {
		t.Errorf("isEmpty = %t, %v", empty, err)
	}
	must(t, removeDir(Volume{Mount: filepath.Join(dir, "x/y/z"), MadeMount: true}))
	if empty, err := isEmpty(filepath.Join(dir, "x/y")); err != nil || !empty {
		t.Errorf("isEmpty = %t, %v", empty, err)
	}
}

// Only the very mount is unmounted: neither one in its place, nor one that a link leads to.
// (The mount is taken for the last element of a path that is none: nothing is unmounted here.)
func TestAnotherMountIsLeftAlone(t *testing.T) {
	proc := blkdev.Mount{ID: 1 << 30, Point: "/proc", Number: blkdev.Number{Major: 0, Minor: 1 << 19}}
	if err := unmountAt(proc); !errors.Is(err, errMoved) {
		t.Errorf("unmountAt = %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink("/", link))
	proc.Point = link + "/proc"
	if err := unmountAt(proc); err == nil || !isMoved(err) {
		t.Errorf("unmountAt = %v", err)
	}
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Fatal(err)
	}
}
