package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/internal/mkfs"
	"github.com/weir-io/weir/lab/internal/tempdir"
)

const loopBytes = 4 << 30

// makeLoop attaches a loop device to a sparse file in dir for the test. The kernel
// detaches it when its last user is gone (LO_FLAGS_AUTOCLEAR), so that it goes
// away even if this process is killed. Direct I/O on the file makes the kernel
// charge the submitter's cgroup, as on a real disk.
func makeLoop(t testing.TB, dir, kind string) string {
	t.Helper()
	if onTmpfs(dir) { // which has no direct I/O
		d, err := tempdir.Make("/var/tmp", "weir-lab-loop-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Remove() })
		dir = d.Path
	}
	path := filepath.Join(dir, "disk")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, loopBytes)); err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := mkfs.Format(ctx, kind, path, false); err != nil {
			t.Fatal(err)
		}
	}
	dev, err := attach(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev.Name()
}

func attach(path string) (*os.File, error) {
	back, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("attach loop device: %w", err)
	}
	defer back.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("attach loop device: %w", err)
	}
	defer control.Close()
	config := unix.LoopConfig{
		Fd:   uint32(back.Fd()),
		Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO | unix.LO_FLAGS_PARTSCAN},
	}
	copy(config.Info.File_name[:], path)
	// Between asking for a free device and taking it, somebody else may.
	for range 20 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("attach loop device to %s: %w", path, err)
		}
		dev, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("attach loop device to %s: %w", path, err)
		}
		err = unix.IoctlLoopConfigure(int(dev.Fd()), &config)
		if err == nil {
			return dev, nil
		}
		_ = dev.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach loop device to %s: %w", path, err)
		}
	}
	return nil, fmt.Errorf("attach loop device to %s: others took twenty free ones", path)
}

func onTmpfs(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC
}
