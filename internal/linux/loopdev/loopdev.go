package loopdev

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// attachTries bounds the race with other programs for a free device.
const attachTries = 64

// Node is the node of loop device n.
func Node(n int) string { return fmt.Sprintf("/dev/loop%d", n) }

// dir is where sysfs has loop device n.
func dir(n int) string { return fmt.Sprintf("/sys/block/loop%d", n) }

// Number is the device number of loop device n. (It is not n where the driver leaves room
// for partitions: loop.max_part.)
func Number(n int) (blkdev.Number, error) {
	text, err := os.ReadFile(dir(n) + "/dev")
	if err != nil {
		return blkdev.Number{}, fmt.Errorf("find %s: %w", Node(n), err)
	}
	return blkdev.ParseNumber(strings.TrimSpace(string(text)))
}

// NumberOfNew is the device number that the driver gives to a device n that it makes. With
// loop.max_part it leaves room for as many partitions, and one, up to a power of two
// (drivers/block/loop.c, part_shift).
func NumberOfNew(n int) blkdev.Number {
	const major = 7 // LOOP_MAJOR
	shift := 0
	if text, err := os.ReadFile("/sys/module/loop/parameters/max_part"); err == nil {
		if partitions, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31); err == nil {
			shift = bits.Len64(partitions)
		}
	}
	return blkdev.Number{Major: major, Minor: uint32(n) << shift}
}

// Of returns which loop device has a number; there is false if none has.
func Of(dev blkdev.Number) (n int, is bool) {
	link, err := os.Readlink("/sys/dev/block/" + dev.String())
	if err != nil {
		return 0, false
	}
	text, is := strings.CutPrefix(filepath.Base(link), "loop")
	n, err = strconv.Atoi(text)
	return n, is && err == nil
}

func openControl() (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("find a free loop device: %w (the kernel's loop module is needed)", err)
	}
	return control, nil
}

// Attach makes the first free loop device one of the file. Once the descriptor is closed
// and nothing is mounted, the device is free again.
func Attach(file *os.File) (*os.File, error) {
	control, err := openControl()
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range attachTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		loop, err := open(n, os.O_RDWR)
		if err != nil {
			return nil, err
		}
		err = configure(loop, file)
		if err == nil {
			return loop, nil
		}
		_ = loop.Close() // nothing was written
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach %s: %w", loop.Name(), err)
		}
	}
	return nil, errors.New("find a free loop device: others keep taking it")
}

// Add makes a new loop device n, with default settings and no rules. The error is EEXIST if it
// exists.
func Add(n int) error {
	control, err := openControl()
	if err != nil {
		return err
	}
	defer control.Close()
	if err := unix.IoctlSetInt(int(control.Fd()), unix.LOOP_CTL_ADD, n); err != nil {
		return fmt.Errorf("make %s: %w", Node(n), err)
	}
	return nil
}

// AttachAs makes loop device n, which is free, one of the file.
func AttachAs(n int, file *os.File) (*os.File, error) {
	loop, err := open(n, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := configure(loop, file); err != nil {
		return nil, errors.Join(fmt.Errorf("attach %s: %w", loop.Name(), err), loop.Close())
	}
	return loop, nil
}

// removeTime bounds how long weir waits for an unmounted device: other programs read it for a
// moment (udev, blkid).
const removeTime = 2 * time.Second

// Remove ends loop device n, which no file is attached to, and with it all rules and
// settings for it. The error is EBUSY while it is in use; there being none is no error.
func Remove(n int) error {
	control, err := openControl()
	if err != nil {
		return err
	}
	defer control.Close()
	for deadline := time.Now().Add(removeTime); ; time.Sleep(10 * time.Millisecond) {
		err := unix.IoctlSetInt(int(control.Fd()), unix.LOOP_CTL_REMOVE, n)
		if err == nil || errors.Is(err, unix.ENODEV) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove %s: %w", Node(n), err)
		}
	}
}

// Exists reports whether there is a loop device n, in use or not.
func Exists(n int) bool {
	_, err := os.Stat(dir(n))
	return err == nil
}

// File returns the path of the file that loop device n is made of; empty: it is free.
func File(n int) (string, error) {
	text, err := os.ReadFile(dir(n) + "/loop/backing_file")
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the file of %s: %w", Node(n), err)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// Inode returns the inode of the file that loop device n is made of.
func Inode(n int) (uint64, error) {
	loop, err := open(n, os.O_RDONLY)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", Node(n), err)
	}
	defer loop.Close()
	info, err := unix.IoctlLoopGetStatus64(int(loop.Fd()))
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", Node(n), err)
	}
	return info.Inode, nil
}

// Detach makes the device release its file once nobody uses it.
func Detach(n int) error {
	if file, err := File(n); err != nil || file == "" {
		return err // it has by itself
	}
	loop, err := open(n, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer loop.Close()
	if err := unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detach %s: %w", Node(n), err)
	}
	return nil
}

// OfFile finds the loop device that a file is already, under whatever name.
func OfFile(file *os.File) (n int, used bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return 0, false, err
	}
	bound, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return 0, false, err
	}
	for _, path := range bound {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.Split(path, "/")[3], "loop"))
		if err != nil {
			continue
		}
		loop, err := open(n, os.O_RDONLY)
		if errors.Is(err, os.ErrNotExist) {
			continue // it has gone meanwhile
		}
		if err != nil {
			return 0, false, fmt.Errorf("look at %s: %w", Node(n), err)
		}
		info, err := unix.IoctlLoopGetStatus64(int(loop.Fd()))
		_ = loop.Close() // nothing was written
		if errors.Is(err, unix.ENXIO) {
			continue // it has let go meanwhile
		}
		if err != nil {
			return 0, false, fmt.Errorf("look at %s: %w", Node(n), err)
		}
		if info.Device == st.Dev && info.Inode == st.Ino {
			return n, true, nil
		}
	}
	return 0, false, nil
}

// DirectIO reports whether loop device n does direct I/O on its file.
func DirectIO(n int) bool {
	text, err := os.ReadFile(dir(n) + "/loop/dio")
	return err == nil && strings.TrimSpace(string(text)) == "1"
}

// KeepSpace makes discards fail, so that the device keeps all space that its file has
// allocated.
func KeepSpace(n int) error {
	if err := os.WriteFile(dir(n)+"/queue/discard_max_bytes", []byte("0"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keep the space of %s: %w", Node(n), err)
	}
	return nil
}

// Resized has loop device n take its file's new size.
func Resized(n int) error {
	loop, err := open(n, os.O_RDWR)
	if err != nil {
		return err
	}
	defer loop.Close()
	if err := unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("resize %s: %w", loop.Name(), err)
	}
	return nil
}

// open opens a loop device, and makes its node where no udev does, as in a container: also that of a device that
// others use.
func open(n, flags int) (*os.File, error) {
	f, err := os.OpenFile(Node(n), flags, 0)
	if errors.Is(err, os.ErrNotExist) {
		dev, err := Number(n)
		if err != nil {
			return nil, err
		}
		if err := unix.Mknod(Node(n), unix.S_IFBLK|0o660, int(unix.Mkdev(dev.Major, dev.Minor))); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("make %s: %w", Node(n), err)
		}
		return os.OpenFile(Node(n), flags, 0)
	}
	return f, err
}

func configure(loop, file *os.File) error {
	config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO}}
	err := unix.IoctlLoopConfigure(int(loop.Fd()), &config)
	if errors.Is(err, unix.EINVAL) { // no direct I/O on this file system
		config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &config)
	}
	return err
}
