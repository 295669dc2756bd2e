package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// exchange swaps two names until the test ends, as fast as it can.
func exchange(t *testing.T, a, b string) {
	t.Helper()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
}

// A user owns a directory above a volume, and exchanges it for a link to a directory with
// another mount of the same name. weir only ever unmounts the volume.
func TestDownUnmountsNoOther(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Loop, lab.FS("ext4"))
	on, home := room(t), t.TempDir()
	theirs, others := filepath.Join(home, "theirs"), filepath.Join(home, "others")
	for _, dir := range []string{theirs, filepath.Join(others, "place")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("none", filepath.Join(others, "place"), "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(filepath.Join(others, "place"), unix.MNT_DETACH); err != nil {
			t.Errorf("the other mount: %v", err)
		}
	})
	v := create(t, filepath.Join(theirs, "place"), on, "--size", "16MiB")
	t.Cleanup(func() { remove(t, v.Name) })
	link := filepath.Join(home, "link")
	if err := os.Symlink(others, link); err != nil {
		t.Fatal(err)
	}
	t.Run("exchanged", func(t *testing.T) {
		exchange(t, theirs, link)
		for range 20 {
			_, _ = try("volume", "down", v.Name) // may fail: it is asked for what moves about
			if others := mountsAt(t, filepath.Join(others, "place")); others != 1 {
				t.Fatalf("the other place has %d mounts", others)
			}
			_, _ = try("volume", "up", v.Name)
		}
	})
	if st, err := os.Lstat(theirs); err != nil || st.Mode()&os.ModeSymlink != 0 {
		if err := unix.Renameat2(unix.AT_FDCWD, theirs, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
			t.Fatal(err)
		}
	}
	weirSays(t, "volume", "up", v.Name)
	t.Run("renamed", func(t *testing.T) {
		aside := filepath.Join(home, "aside")
		if err := os.Rename(theirs, aside); err != nil {
			t.Fatal(err)
		}
		weirSays(t, "volume", "down", v.Name)
		if n := mountsAt(t, filepath.Join(aside, "place")); n != 0 {
			t.Errorf("weir says that it is down, and it is mounted")
		}
		if err := os.Rename(aside, theirs); err != nil {
			t.Fatal(err)
		}
	})
}

func mountsAt(t *testing.T, point string) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == point {
			n++
		}
	}
	return n
}

// weir makes a volume's file only where nobody but root can rename, and refuses another file
// in its place.
func TestTheFileIsTheVolumesOwn(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Loop, lab.FS("ext4"))
	on := room(t)
	user := filepath.Join(on, "user")
	if err := errors.Join(os.Mkdir(user, 0o755), os.Chown(user, 1000, 1000)); err != nil {
		t.Fatal(err)
	}
	refused(t, "does not belong to root", "volume", "create", unique(t), "--on", user, "--size", "16MiB")
	v := create(t, unique(t), on, "--size", "16MiB")
	other := create(t, unique(t)+"-other", on, "--size", "16MiB")
	weirSays(t, "volume", "down", v.Name)
	weirSays(t, "volume", "down", other.Name)
	if err := unix.Renameat2(unix.AT_FDCWD, v.Image, unix.AT_FDCWD, other.Image, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	refused(t, "is not the file that", "volume", "up", v.Name)
	weirSays(t, "volume", "up", v.Name, "--accept-file")
	weirSays(t, "volume", "down", v.Name)
	refused(t, "is not the file that", "volume", "up", other.Name)
	if err := unix.Renameat2(unix.AT_FDCWD, v.Image, unix.AT_FDCWD, other.Image, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	weirSays(t, "volume", "up", v.Name, "--accept-file")
	weirSays(t, "volume", "up", other.Name)
}
