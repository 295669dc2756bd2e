package blkdev

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// loopFileDevice asks the loop driver on which file system its file is (lo_device of
// LOOP_GET_STATUS64, include/uapi/linux/loop.h). It takes the right to open the node.
// sysfs has the file's path only, which leads nowhere once the file is unlinked.
func loopFileDevice(node string) (Number, error) {
	fd, err := unix.Open(node, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return Number{}, fmt.Errorf("open %s: %w", node, err)
	}
	defer unix.Close(fd)
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		return Number{}, fmt.Errorf("ask %s for its file: %w", node, err)
	}
	return numberOf(info.Device), nil
}

// deletedMark is what the kernel's d_path puts after the path of an unlinked file.
const deletedMark = " (deleted)"

// readLoop reads a loop device's file. The directory loop/ exists only while the device has
// one.
func (fs FS) readLoop(dir string, d *Device) error {
	d.Kind = Loop
	file, err := fs.attr(dir + "/loop/backing_file")
	if err != nil {
		if isNotExist(err) {
			return nil
		}
		return err
	}
	b := &Backing{File: file}
	if name, ok := strings.CutSuffix(file, deletedMark); ok {
		if _, err := os.Lstat(fs.at(file)); err != nil { // unless the file is really called so
			b.File, b.Deleted = name, true
		}
	}
	dio, err := fs.attr(dir + "/loop/dio")
	if err != nil && !isNotExist(err) {
		return err
	}
	b.DirectIO = dio == "1"
	d.Backing = b
	return nil
}
