package helper

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/bpf"
)

// A failure is an error on its way to whoever asked.
type failure struct {
	Text        string           `json:"text"`
	Class       fault.Class      `json:"class,omitempty"`
	Number      unix.Errno       `json:"errno,omitempty"`
	Path        *pathFailure     `json:"path,omitempty"`
	Unavailable *bpf.Unavailable `json:"unavailable,omitempty"`
}

// A pathFailure is an fs.PathError.
type pathFailure struct{ Op, Path, Cause string }

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error(), Class: fault.ClassOf(err)}
	_ = errors.As(err, &f.Number)
	var path *fs.PathError
	if errors.As(err, &path) {
		f.Path = &pathFailure{path.Op, path.Path, path.Err.Error()}
	}
	var cannot *bpf.Unavailable
	if errors.As(err, &cannot) {
		f.Unavailable = &bpf.Unavailable{Op: cannot.Op, Reason: cannot.Reason, Remedy: cannot.Remedy}
	}
	return f
}

func (f *failure) err() error {
	if f.Unavailable != nil {
		return f.Unavailable
	}
	return &told{*f}
}

// told is an error that a helper has told of.
type told struct{ failure }

func (e *told) Error() string { return e.Text }

// Class is the one that the error had in the helper.
func (e *told) Class() fault.Class { return e.failure.Class }

func (e *told) Unwrap() error {
	var cause error
	if e.Number != 0 {
		cause = e.Number
	}
	if e.Path == nil {
		return cause
	}
	if cause == nil {
		cause = errors.New(e.Path.Cause)
	}
	return &fs.PathError{Op: e.Path.Op, Path: e.Path.Path, Err: cause}
}
