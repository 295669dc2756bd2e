package volume

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/loopdev"
)

// A machine has the loop devices and mounts that volumes are made of. Loop devices go by their
// number, as in package loopdev. Tests have one that remembers.
type machine interface {
	exists(n int) bool
	number(n int) (blkdev.Number, error)
	loopOf(dev blkdev.Number) (n int, is bool)
	file(n int) (string, error)
	inode(n int) (uint64, error)
	numberOfNew(n int) blkdev.Number // that the device n will have
	ofFile(image *os.File) (n int, used bool, err error)

	add(n int) error
	// attach holds the device until it is closed; a mount holds it too.
	attach(n int, image *os.File) (io.Closer, error)
	keepSpace(n int) error
	grow(n int) error // to the size of its file
	detach(n int) error
	remove(n int) error

	mount(n int, v Volume) error
	unmount(m blkdev.Mount) error
}

func (s Store) machine() machine {
	if s.standIn != nil {
		return s.standIn
	}
	return running{}
}

// running is the machine that weir runs on.
type running struct{}

func (running) exists(n int) bool                           { return loopdev.Exists(n) }
func (running) number(n int) (blkdev.Number, error)         { return loopdev.Number(n) }
func (running) loopOf(dev blkdev.Number) (int, bool)        { return loopdev.Of(dev) }
func (running) file(n int) (string, error)                  { return loopdev.File(n) }
func (running) inode(n int) (uint64, error)                 { return loopdev.Inode(n) }
func (running) numberOfNew(n int) blkdev.Number             { return loopdev.NumberOfNew(n) }
func (running) ofFile(image *os.File) (int, bool, error)    { return loopdev.OfFile(image) }
func (running) add(n int) error                             { return loopdev.Add(n) }
func (running) attach(n int, f *os.File) (io.Closer, error) { return loopdev.AttachAs(n, f) }
func (running) keepSpace(n int) error                       { return loopdev.KeepSpace(n) }
func (running) detach(n int) error                          { return loopdev.Detach(n) }
func (running) remove(n int) error                          { return loopdev.Remove(n) }
func (running) unmount(m blkdev.Mount) error                { return unmountAt(m) }

func (running) grow(n int) error {
	return loopdev.Resized(n)
}

// mount mounts a device at a volume's place, which must be where it was: somebody else may have
// replaced the path by a symbolic link.
func (running) mount(n int, v Volume) error {
	node := loopdev.Node(n)
	place, err := openPlain(v.Mount, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("mount %s: %w", node, err)
	}
	defer place.Close()
	if err := unix.Mount(node, fmt.Sprintf("/proc/self/fd/%d", place.Fd()), v.FS, unix.MS_NODEV|unix.MS_NOSUID, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", node, v.Mount, err)
	}
	return nil
}
