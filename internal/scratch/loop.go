package scratch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// attachTries bounds the race for a free loop device with others who want one.
const attachTries = 64

// attach makes a loop device of the file, with direct I/O on it where the file
// system can. The device is released with its last user.
func attach(file *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("find a free loop device: %w (the kernel's loop module is needed)", err)
	}
	defer control.Close()
	for range attachTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		loop, err := openLoop(n)
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

// openLoop opens a loop device, and makes its node where no udev does.
func openLoop(n int) (*os.File, error) {
	node := fmt.Sprintf("/dev/loop%d", n)
	const loopMajor = 7
	f, err := os.OpenFile(node, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		if err := unix.Mknod(node, unix.S_IFBLK|0o660, int(unix.Mkdev(loopMajor, uint32(n)))); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("make %s: %w", node, err)
		}
		f, err = os.OpenFile(node, os.O_RDWR, 0)
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
