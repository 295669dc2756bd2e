package weir

import (
	"errors"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/keep"
)

// The classes of errors, for errors.Is. An error of this package belongs to one of them at most. If
// it belongs to none, something was tried and failed, and errors.Is and errors.As find the cause.
var (
	// ErrNotFound: there is no target of that name, or it does not run.
	ErrNotFound = errors.New("weir: not found")
	// ErrDenied: the program may not do that. weir needs root, or a delegated cgroup.
	ErrDenied = errors.New("weir: permission denied")
	// ErrNotPossible: this host cannot do that. The text says why.
	ErrNotPossible = errors.New("weir: not possible on this host")
	// ErrWrongUse: the request is wrong on every host.
	ErrWrongUse = errors.New("weir: wrong use")
)

// An Error is what all functions of this package return if something goes wrong.
type Error struct {
	// Notes are what weir has noted before the error.
	Notes []Note
	// Remedy is what can be done about it; the zero Remedy: nothing is known.
	Remedy Remedy

	err error
}

// told makes an Error; nil stays nil.
func told(err error, notes []Note) error {
	if err == nil {
		return nil
	}
	e := &Error{Notes: notes, err: err}
	var remedied *fault.Remedied
	var unkept *keep.Refused
	if errors.As(err, &remedied) {
		e.Remedy = remedyOf(remedied.Remedy)
	} else if errors.As(err, &unkept) {
		e.Remedy = remedyOf(unkept.Remedy)
	}
	return e
}

// Error is the text, with the remedy behind it.
func (e *Error) Error() string { return withRemedy(e.err.Error(), e.Remedy) }

// Unwrap is the cause. Its types belong to the standard library, or are not for use.
func (e *Error) Unwrap() error { return e.err }

// Is reports whether a class is that of the error.
func (e *Error) Is(class error) bool {
	switch fault.ClassOf(e.err) {
	case fault.NotFound:
		return class == ErrNotFound
	case fault.Denied:
		return class == ErrDenied
	case fault.NotPossible:
		return class == ErrNotPossible
	case fault.WrongUse:
		return class == ErrWrongUse
	}
	return false
}
