package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// recordMost bounds a record, in bytes: the longest has a few hundred trees or places.
const recordMost = 1 << 20

// A DamagedError says that a file in the place of a record cannot be one, or has a content that
// weir did not write. It speaks of that file alone: every other record is as good as before, and
// no verb that asks for others ends with it.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("read %s: %v; move it away", e.Path, e.Err) }

func (e *DamagedError) Unwrap() error { return e.Err }

// IsDamaged reports whether damaged records are all that an error is about.
func IsDamaged(err error) bool {
	switch e := err.(type) {
	case *DamagedError:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(one error) bool { return !IsDamaged(one) })
	case interface{ Unwrap() error }:
		return IsDamaged(e.Unwrap())
	}
	return false
}

// read reads a file that is a record: a regular one, which belongs to this user or to root, which
// nobody else can write to, and which is not long. Anything else at its place is a *DamagedError, and
// is neither waited for nor followed.
func read(path string) ([]byte, error) {
	fd, err := again(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	if errors.Is(err, unix.ELOOP) {
		return nil, &DamagedError{path, errors.New("it is a link, and no record")}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, &DamagedError{path, errors.New("it is no regular file, and no record")}
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return nil, &DamagedError{path, fmt.Errorf("it belongs to user %d, so it is no record of weir", st.Uid)}
	case st.Mode&0o022 != 0:
		return nil, &DamagedError{path, fmt.Errorf("others can write to it (mode %04o), so it is no record of weir", st.Mode&0o7777)}
	}
	data, err := io.ReadAll(io.LimitReader(f, recordMost+1))
	if err == nil && len(data) > recordMost {
		err = &DamagedError{path, fmt.Errorf("it is longer than %d bytes, and no record", recordMost)}
	}
	return data, err
}
