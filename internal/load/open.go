package load

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fdPrefix is what File begins with for a file that the process has inherited.
const fdPrefix = "fd:"

// open opens what the job is about, and gives a file to write its size: no operation
// is about the file's end.
func (j Job) open() (*os.File, error) {
	f, err := j.openFile()
	if errors.Is(err, unix.EINVAL) && j.flags()&unix.O_DIRECT != 0 {
		return nil, fmt.Errorf("load %s: the file system has no direct I/O: %w", j.name(), errors.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if err := j.measure(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("load %s: %w", j.name(), err)
	}
	return f, nil
}

func (j Job) openFile() (*os.File, error) {
	if j.Dir != "" {
		return nameless(j.Dir, j.flags())
	}
	if !strings.HasPrefix(j.File, fdPrefix) {
		return os.OpenFile(j.File, j.flags()|unix.O_NOFOLLOW, 0o600)
	}
	fd, err := j.inherited()
	if err != nil {
		return nil, err
	}
	// Opened anew, because the flags belong to the open file, which others share.
	return os.OpenFile("/proc/self/fd/"+strconv.Itoa(fd), j.flags()&^os.O_CREATE, 0)
}

func (j Job) inherited() (fd int, err error) {
	fd, err = strconv.Atoi(strings.TrimPrefix(j.File, fdPrefix))
	if err != nil || fd < 0 {
		return 0, fmt.Errorf("load %s: want the number of a file that is open, such as fd:3", j.File)
	}
	return fd, nil
}

func (j Job) flags() int {
	flags := os.O_RDWR | os.O_CREATE
	if j.Read {
		flags = os.O_RDONLY
	}
	switch j.Path {
	case Direct, Async:
		flags |= unix.O_DIRECT
	case Sync:
		flags |= unix.O_DSYNC
	}
	return flags
}

// measure sees to it that a file, if it is a regular one, has the size that is used.
func (j Job) measure(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() >= j.Size {
		return err
	}
	if j.Read {
		return fmt.Errorf("it has %d bytes, and %d are to be read", info.Size(), j.Size)
	}
	return f.Truncate(j.Size)
}

// nameless opens a new file that has no name (O_TMPFILE, open(2)). Where the file
// system knows no such, as NFS and older overlays do, it loses its name at once.
func nameless(dir string, flags int) (*os.File, error) {
	flags &^= os.O_CREATE
	f, err := os.OpenFile(dir, unix.O_TMPFILE|flags, 0o600)
	// EISDIR is of kernels, or file systems, that take the flag for O_DIRECTORY.
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) {
		return f, err
	}
	named, err := os.CreateTemp(dir, ".weir-load-")
	if err != nil {
		return nil, err
	}
	defer named.Close()
	f, err = os.OpenFile(named.Name(), flags|unix.O_NOFOLLOW, 0)
	return f, errors.Join(err, os.Remove(named.Name()))
}
