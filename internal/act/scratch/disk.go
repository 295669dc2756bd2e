package scratch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/tool"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/loopdev"
)

// A Disk is a mounted scratch disk.
type Disk struct {
	Dir    string // where it is mounted
	Node   string // the loop device's node
	Device blkdev.Number
}

// mountPoint is the same for all: each is seen in one namespace only.
const mountPoint = "/run/weir/scratch"

// New makes a disk of size bytes, on a sparse file in dir, and mounts it. The
// process must be Inside. dir's file system must have room for what will be written.
func New(ctx context.Context, dir string, size int64) (*Disk, error) {
	if !Inside() {
		return nil, errors.New("make scratch disk: not in a mount namespace of its own")
	}
	if err := os.MkdirAll(mountPoint, 0o700); err != nil {
		return nil, fmt.Errorf("make scratch disk: %w", err)
	}
	file, err := nameless(dir)
	if err != nil {
		return nil, fmt.Errorf("make scratch disk in %s: %w", dir, err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		return nil, fmt.Errorf("make scratch disk in %s: %w", dir, err)
	}
	loop, err := loopdev.Attach(file)
	if err != nil {
		return nil, fmt.Errorf("make scratch disk: %w", err)
	}
	// The mount keeps the loop device once this descriptor is gone.
	defer loop.Close()
	d := &Disk{Dir: mountPoint, Node: loop.Name()}
	var st unix.Stat_t
	if err := unix.Fstat(int(loop.Fd()), &st); err != nil {
		return nil, fmt.Errorf("stat %s: %w", d.Node, err)
	}
	d.Device = blkdev.Number{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}
	return d, d.format(ctx)
}

func (d *Disk) format(ctx context.Context) error {
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		if mkfs, err = exec.LookPath("/usr/sbin/mkfs.ext4"); err != nil {
			return errors.New("make scratch disk: mkfs.ext4 is not here; install e2fsprogs")
		}
	}
	// Everything is initialised now, so that nothing but the load writes later.
	cmd := exec.CommandContext(ctx, mkfs, "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-N", "64", "-J", "size=8", d.Node)
	if out, said, err := tool.Run(cmd); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return fmt.Errorf("make scratch disk: %s %s: %w: %s", mkfs, d.Node, err, bytes.TrimSpace(append(out, said...)))
	}
	if err := unix.Mount(d.Node, d.Dir, "ext4", unix.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mount %s on %s: %w", d.Node, d.Dir, err)
	}
	return nil
}

// Close unmounts the disk, and with it releases the loop device and its file.
func (d *Disk) Close() error {
	if err := unix.Unmount(d.Dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", d.Dir, err)
	}
	return nil
}

// nameless opens a new file that has no name, or that loses it at once on a file
// system without O_TMPFILE.
func nameless(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), filepath.Join(dir, "scratch")), nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "weir-scratch-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}
