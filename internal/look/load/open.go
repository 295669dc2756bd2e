package load

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fdPrefix begins a File or Dir that the process has inherited.
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
	fd, err := inherited(j.File)
	if err != nil {
		return nil, err
	}
	return reopen(fd, j.flags()&^os.O_CREATE)
}

func inherited(name string) (fd int, err error) {
	fd, err = strconv.Atoi(strings.TrimPrefix(name, fdPrefix))
	if err != nil || fd < 0 {
		return 0, fmt.Errorf("load %s: want the number of a file that is open, such as fd:3", name)
	}
	return fd, nil
}

// reopen opens an open file anew, because its flags belong to the open file, which others may
// share. It opens only regular files: opening a device can have effects.
func reopen(fd, flags int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errIrregular
	}
	return os.OpenFile("/proc/self/fd/"+strconv.Itoa(fd), flags, 0)
}

var errIrregular = errors.New("it is not a regular file")

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

// measure sees to it that the file is a regular one and has the size that is used.
func (j Job) measure(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil || info.Size() >= j.Size {
		return err
	}
	if j.Read {
		return fmt.Errorf("it has %d bytes, but the load has to read %d", info.Size(), j.Size)
	}
	return f.Truncate(j.Size)
}

// nameless opens a new file that has no name (O_TMPFILE, open(2)) in a directory, which
// may be an inherited one. Where the file system knows no such, as NFS and older
// overlays do, it loses its name at once.
func nameless(dir string, flags int) (*os.File, error) {
	flags &^= os.O_CREATE
	at, done, err := directory(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	fd, err := openat(at, ".", unix.O_TMPFILE|flags)
	// EISDIR is of kernels, or file systems, that take the flag for O_DIRECTORY.
	if err == unix.EOPNOTSUPP || err == unix.EISDIR {
		return unnamed(at, dir, flags)
	}
	if err != nil {
		return nil, &os.PathError{Op: "make a file in", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), "a file in "+dir), nil
}

// directory returns a descriptor of a directory, and what closes it.
func directory(dir string) (fd int, done func(), err error) {
	if strings.HasPrefix(dir, fdPrefix) {
		fd, err = inherited(dir)
		return fd, func() {}, err
	}
	fd, err = openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return 0, nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return fd, func() { _ = unix.Close(fd) }, nil
}

// unnamed makes a file and removes its name. Others may put something else there before
// that, so it is opened again by its descriptor.
func unnamed(at int, dir string, flags int) (*os.File, error) {
	name := ".weir-load-" + rand.Text()
	fd, err := openat(at, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR)
	if err != nil {
		return nil, &os.PathError{Op: "make a file in", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	f, err := reopen(fd, flags)
	if gone := unix.Unlinkat(at, name, 0); gone != nil {
		err = errors.Join(err, &os.PathError{Op: "remove", Path: dir + "/" + name, Err: gone})
	}
	if err != nil && f != nil {
		_ = f.Close()
		f = nil
	}
	return f, err
}

func openat(at int, name string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Openat(at, name, flags|unix.O_CLOEXEC, 0o600)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
