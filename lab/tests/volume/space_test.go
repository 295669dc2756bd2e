package volume_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/loopdev"
	"github.com/weir-io/weir/lab"
)

func free(t *testing.T, dir string) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bavail) * st.Bsize
}

// allTaken checks that a file has all its space.
func allTaken(t *testing.T, image string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(image, &st); err != nil {
		t.Fatal(err)
	}
	if st.Blocks*512 < st.Size {
		t.Errorf("%s takes %d bytes of its %d", image, st.Blocks*512, st.Size)
	}
}

// A loop device whose node is missing, as in a container with a /dev of its own, is in no volume's way, and a volume
// whose node has gone is taken down.
func TestLoopDevicesWithoutNodes(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Loop, lab.FS("ext4"))
	on := room(t)
	file, err := os.Create(filepath.Join(on, "others"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	others, err := loopdev.Attach(file)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	hide := func(node string) {
		t.Helper()
		var st unix.Stat_t
		if err := unix.Stat(node, &st); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := os.Stat(filepath.Join("/sys/block", filepath.Base(node))); err != nil {
				return // the device has gone
			}
			if err := unix.Mknod(node, st.Mode, int(st.Rdev)); err != nil && !errors.Is(err, unix.EEXIST) {
				t.Error(err)
			}
		})
	}
	hide(others.Name())
	v := create(t, unique(t), on, "--size", "32MiB")
	weirSays(t, "volume", "down", v.Name)
	weirSays(t, "volume", "up", v.Name)
	hide(find(t, v.Name).Device)
	weirSays(t, "volume", "down", v.Name)
}

// A volume keeps its space, whatever is done on it, and takes no more.
func TestSpaceIsTaken(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Loop, lab.FS("ext4"))
	v := create(t, unique(t), room(t), "--size", "64MiB")
	allTaken(t, v.Image)
	file := filepath.Join(v.Mount, "f")
	if out, err := exec.Command("dd", "if=/dev/zero", "of="+file, "bs=1M").CombinedOutput(); err == nil {
		t.Errorf("dd has filled a volume without an error: %s", out)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	// What is allocated and never written is zeroed in the device's own way when parts are.
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 32<<20); err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at < 32<<20; at += 64 << 10 {
		if _, err := f.WriteAt([]byte("x"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	allTaken(t, v.Image)
	t.Run("trimmed", func(t *testing.T) {
		lab.Need(t, lab.MinKernel(5, 19))         // before, a device whose discards are off takes them all the same
		_ = exec.Command("fstrim", v.Mount).Run() // which is not possible
		allTaken(t, v.Image)
	})
}

// weir notices what somebody did to a volume's files while it was down, and removes no file
// of theirs.
func TestTheFilesAreLookedAt(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Loop, lab.FS("ext4"))
	on, name := room(t), unique(t)+".json" // as records are called
	v := create(t, name, on, "--size", "16MiB")
	weirSays(t, "volume", "down", name)
	stray := filepath.Join(v.Mount, "stray")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, "has files in it", "volume", "up", name)
	if err := os.Remove(stray); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(v.Mount); err != nil {
		t.Fatal(err)
	}
	weirSays(t, "volume", "up", name)
	if err := os.Link(v.Image, v.Image+".link"); err != nil {
		t.Fatal(err)
	}
	weirSays(t, "volume", "down", name)
	if out, err := exec.Command("losetup", "--find", v.Image+".link").CombinedOutput(); err != nil {
		t.Fatalf("losetup: %v\n%s", err, out)
	}
	refused(t, "already", "volume", "up", name)
	refused(t, "already", "volume", "delete", name)
	out, err := exec.Command("losetup", "--noheadings", "--output", "NAME", "--associated", v.Image+".link").Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("losetup", "--detach", strings.TrimSpace(string(out))).CombinedOutput(); err != nil {
		t.Fatalf("losetup: %v\n%s", err, out)
	}
	if err := os.Chmod(v.Image, 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, "only root", "volume", "up", name)
	aside := v.Image + ".aside"
	if err := os.Rename(v.Image, aside); err != nil {
		t.Fatal(err)
	}
	refused(t, "is gone", "volume", "delete", name)
	if err := os.WriteFile(v.Image, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, "is not the file that", "volume", "delete", name)
	weirSays(t, "volume", "forget", name)
	if text, err := os.ReadFile(v.Image); string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// weir refuses what cannot be done, and leaves nothing behind.
func TestRefusals(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Loop, lab.FS("ext4"))
	on := room(t)
	taken := filepath.Join(on, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	name := unique(t)
	if err := os.WriteFile(filepath.Join(on, name+".img"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, "has files in it", "volume", "create", taken, "--size", "32MiB", "--on", on)
	refused(t, "exists already", "volume", "create", name, "--size", "32MiB", "--on", on)
	refused(t, "only ", "volume", "create", name+"x", "--size", "1000TiB", "--on", on)
	refused(t, "the size is too small", "volume", "create", name+"x", "--size", "1MiB", "--on", on)
	refused(t, "something is mounted", "volume", "create", "/proc", "--size", "32MiB", "--on", on)
	refused(t, "a name is", "volume", "create", "a b", "--size", "32MiB", "--on", on)
	refused(t, "nothing is mounted at", "volume", "adopt", taken, "--write", "1MB/s")
	refused(t, "another mount", "volume", "adopt", "/", "--write", "1MB/s")
	refused(t, "there is", "volume", "up", name)
	for _, v := range volumes(t) {
		if v.Name == name || v.Name == name+"x" {
			t.Errorf("left: %+v", v)
		}
	}
	left, err := os.ReadDir(on)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.Name() != "taken" && e.Name() != name+".img" && e.Name() != "lost+found" {
			t.Errorf("left: %s", e.Name())
		}
	}
	if text, err := os.ReadFile(filepath.Join(on, name+".img")); string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
