package peek

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrNotRegular says that a name is no regular file's.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading, without ever waiting: the owner of the directory can
// put a FIFO, a device or a link in the file's place at any time, or have a lease on it. It
// opens exactly the file that it has checked.
func Open(name string) (*os.File, error) {
	fd, err := open(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func open(name string) (fd int, err error) {
	look, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(look)
	var st unix.Stat_t
	if err := unix.Fstat(look, &st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1, ErrNotRegular
	}
	for {
		fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(look), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// ErrLong says that a file has more than is read of it.
var ErrLong = errors.New("it is longer")

// errWaits is of files of the kernel, such as /proc/kmsg, that look regular and wait for events.
var errWaits = errors.New("it is a file of the kernel that waits for events")

// Regular reads a regular file, as Open opens it, without ever waiting. A file of more than most
// bytes is an error.
func Regular(name string, most int) ([]byte, error) {
	failed := func(op string, err error) ([]byte, error) { return nil, &fs.PathError{Op: op, Path: name, Err: err} }
	fd, err := open(name)
	if err != nil {
		return failed("open", err)
	}
	defer unix.Close(fd)
	var text []byte
	for piece := make([]byte, 64<<10); ; {
		n, err := unix.Read(fd, piece)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return failed("read", errWaits)
		case err != nil:
			return failed("read", err)
		case n == 0:
			return text, nil
		case len(text)+n > most:
			return failed("read", fmt.Errorf("%w than %d bytes", ErrLong, most))
		}
		text = append(text, piece[:n]...)
	}
}
