package pagecache

import (
	"errors"
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
	refused := func(err error) (*os.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	look, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(look)
	var st unix.Stat_t
	if err := unix.Fstat(look, &st); err != nil {
		return refused(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return refused(ErrNotRegular)
	}
	for {
		fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(look), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return refused(err)
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}
