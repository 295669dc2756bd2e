package mend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/inode"
)

// errOther is for a name that no longer leads to the file that was found.
var errOther = errors.New("it is no longer the same file: it was closed or replaced meanwhile")

// open opens a file as a name only (O_PATH): that has no effect, and keeps what was
// found, whatever becomes of its names and of the process that has it open.
func (m Mender) open(ctx context.Context, found inode.File) (*os.File, error) {
	flags := unix.O_PATH | unix.O_CLOEXEC
	if found.PID == 0 {
		flags |= unix.O_NOFOLLOW
	}
	name := found.Handle()
	fd, err := unix.Open(name, flags, 0)
	for errors.Is(err, unix.EINTR) {
		fd, err = unix.Open(name, flags, 0)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil, errOther
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	h := os.NewFile(uintptr(fd), name)
	files, err := m.Owners.OfPaths(ctx, []string{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)})
	if err == nil && (len(files) != 1 || files[0].Inode != found.Inode || files[0].Device != found.Device) {
		err = errOther
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Reason says why a file was not moved, without the name of its descriptor, which means nothing
// to people.
func Reason(err error) string {
	var refused *inode.Refused
	var unmoved *inode.Unmoved
	var path *fs.PathError
	switch {
	case errors.As(err, &refused) && refused.Remedy != "":
		return refused.Reason + "; " + refused.Remedy
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &unmoved):
		return fmt.Sprintf("the kernel kept charging it to its owner through %d rounds of writeback: another process may be writing to it or hold its pages", unmoved.Rounds)
	case errors.As(err, &path):
		return path.Op + ": " + path.Err.Error()
	}
	return err.Error()
}
