package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// A WriteError says that the kernel refused a line, or kept another value.
type WriteError struct {
	Write
	Err  error  // what the kernel answered; nil if it took the line but reads back differently
	Kept string // what is read back, if Err is nil
	Rule Rule   // that, where it is a rule
	Why  string // what the answer means here; may be empty
}

func (e *WriteError) Error() string {
	s := fmt.Sprintf("write %q to %s: ", e.Line, e.File)
	if e.Err != nil {
		s += reason(e.Err).Error()
	} else {
		s += fmt.Sprintf("the kernel keeps %q", e.Kept)
	}
	if e.Why != "" {
		s += " (" + e.Why + ")"
	}
	return s
}

func (e *WriteError) Unwrap() error { return e.Err }

// reason strips the operation and path that package os puts around an errno: the
// message names them already.
func reason(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// IsGone reports whether err says that the group, file or process is not there (any more).
func IsGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ESRCH)
}
