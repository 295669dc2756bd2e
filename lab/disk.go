package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/mkfs"
)

// TestDisk is a disk that belongs to one test until that ends.
type TestDisk struct {
	Node   string // /dev/…, a whole disk
	Number blkdev.Number
	FS     string // empty for a raw disk
	Dir    string // where it is mounted; empty for a raw disk
}

// Disk gives the test an empty disk with a file system, mounted in a temporary
// folder: natively a loop device with direct I/O, in guests a disk of its own. It
// waits when other tests have all disks of the kind. The test is skipped where
// the file system does not exist.
func Disk(t testing.TB, fs Requirement) *TestDisk {
	t.Helper()
	e := need(t, fs)
	var kind string
	if _, err := fmt.Sscanf(string(fs), "fs:%s", &kind); err != nil {
		t.Fatalf("lab.Disk takes a lab.FS, not %q", fs)
	}
	s := claim(t, e, kind)
	s.mount(t)
	return s
}

// DiskOn gives the test a disk with ext4 that is a file on another one: a loop device with
// direct I/O, whose requests take what those of the other disk do.
func DiskOn(t testing.TB, below *TestDisk) *TestDisk {
	t.Helper()
	s := diskAt(t, makeLoop(t, below.Dir, "ext4"), "ext4")
	s.mount(t)
	return s
}

func (s *TestDisk) mount(t testing.TB) {
	t.Helper()
	s.Dir = t.TempDir()
	// Cleanups run last in, first out: the disk is unmounted before it is given back.
	err := unix.Mount(s.Node, s.Dir, s.FS, unix.MS_NOATIME, mkfs.MountOptions(s.FS))
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a kernel without quotas
		err = unix.Mount(s.Node, s.Dir, s.FS, unix.MS_NOATIME, "")
	}
	if err != nil {
		t.Fatalf("mount %s on %s: %v", s.Node, s.Dir, err)
	}
	t.Cleanup(func() { unmount(t, s.Dir) })
}

// RawDisk gives the test an empty disk without a file system or partitions.
func RawDisk(t testing.TB) *TestDisk {
	t.Helper()
	return claim(t, need(t), "")
}

func claim(t testing.TB, e environ.Environ, kind string) *TestDisk {
	t.Helper()
	if e.Lane == "native" {
		return diskAt(t, makeLoop(t, t.TempDir(), kind), kind)
	}
	return diskAt(t, claimDisk(t, e, kind), kind)
}

func diskAt(t testing.TB, node, kind string) *TestDisk {
	t.Helper()
	n, err := number(node)
	if err != nil {
		t.Fatal(err)
	}
	return &TestDisk{Node: node, Number: n, FS: kind}
}

// claimDisk takes a free disk of the guest. A lock on a file says who has it;
// what the file holds, whether somebody had it before.
func claimDisk(t testing.TB, e environ.Environ, kind string) string {
	t.Helper()
	most := e.Patience(2 * time.Minute)
	deadline := time.Now().Add(most)
	for {
		for _, d := range e.Disks {
			if d.FS != kind {
				continue
			}
			f, err := tryClaim(filepath.Join(e.Dir, "claim-"+d.Name))
			if err != nil {
				t.Fatalf("claim disk %s: %v", d.Name, err)
			}
			if f == nil {
				continue
			}
			t.Cleanup(func() { _ = f.Close() })
			if err := renew(f, d); err != nil {
				t.Fatalf("claim disk %s: %v", d.Name, err)
			}
			return d.Node
		}
		if time.Now().After(deadline) {
			t.Fatalf("claim a disk with %q: other tests have had all of them for %s", kind, most)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func tryClaim(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

// renew empties a disk that was used before. The host made all of them empty.
func renew(f *os.File, d environ.Disk) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		_, err := f.WriteString("used\n")
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := released(d.Node); err != nil {
		return err
	}
	if d.FS != "" {
		err = mkfs.Format(ctx, d.FS, d.Node, true)
	} else {
		err = wipe(d.Node)
	}
	return errors.Join(err, settle(ctx))
}

// settle waits for udev, if it runs, to have read a disk that was written: about 1 MB,
// which a test that counts what is read would count. It does not wait long: udev may be
// busy with other tests' disks, and looks again and again at one that is locked.
func settle(ctx context.Context) error {
	if _, err := os.Stat("/run/udev/control"); err != nil {
		return nil
	}
	err := exec.CommandContext(ctx, "udevadm", "settle", "--timeout=5").Run()
	var late *exec.ExitError
	if err != nil && !errors.As(err, &late) {
		return fmt.Errorf("wait for udev: %w", err)
	}
	return nil
}

// released waits until nobody has the disk mounted: the mount namespace of a process
// that was killed goes a moment after it.
func released(node string) error {
	const most = 10 * time.Second
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		fd, err := unix.Open(node, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
		if err == nil {
			return unix.Close(fd)
		}
		if !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("open %s: %w", node, err)
		}
		if time.Since(began) > most {
			return fmt.Errorf("%s has been in use for %s: an earlier test left it mounted or open", node, most)
		}
	}
}

// wipe clears the places where partition tables and signatures are, both ends of
// the disk, and makes the kernel forget the partitions it saw.
func wipe(node string) error {
	const end = 2 << 20
	f, err := os.OpenFile(node, os.O_RDWR|os.O_EXCL, 0)
	if err != nil {
		return fmt.Errorf("wipe: %w", err)
	}
	size, err := f.Seek(0, 2)
	if err == nil {
		_, err = f.WriteAt(make([]byte, end), 0)
	}
	if err == nil {
		_, err = f.WriteAt(make([]byte, end), size-end)
	}
	err = errors.Join(err, f.Sync(), rereadPartitions(f), f.Close())
	if err != nil {
		return fmt.Errorf("wipe %s: %w", node, err)
	}
	return nil
}

// unmount waits for processes that are just ending. A mount that stays busy is a
// failure of the test that left something there.
func unmount(t testing.TB, dir string) {
	deadline := time.Now().Add(15 * time.Second)
	for {
		err := unix.Unmount(dir, 0)
		if err == nil || errors.Is(err, unix.EINVAL) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("unmount %s: %v: the test left something running or open there", dir, err)
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Errorf("detach %s: %v", dir, err)
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func number(node string) (blkdev.Number, error) {
	var st unix.Stat_t
	if err := unix.Stat(node, &st); err != nil {
		return blkdev.Number{}, fmt.Errorf("stat %s: %w", node, err)
	}
	return blkdev.Number{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}, nil
}
