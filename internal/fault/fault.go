// Package fault sorts errors into classes, so that every front end says the same of them:
// the command line as an exit code, an API as an HTTP status. An error type belongs to a
// class if it has the method of Classed. This package knows none of those types.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
)

// A Class says what kind of "no" an error is.
type Class int

// The classes. Where errors are joined or wrapped, the class furthest down this list counts.
const (
	NotDone     Class = iota // it was tried and is not done; the zero Class
	NotFound                 // there is nothing of that name
	Denied                   // the caller may not do it
	NotPossible              // this host cannot do it
	WrongUse                 // the request is wrong on every host
)

// Classed is an error that says its class.
type Classed interface {
	error
	Class() Class
}

// ClassOf returns the class of an error, and of all that it wraps. An error without a class
// is Denied if it says fs.ErrPermission, and else NotDone.
func ClassOf(err error) Class {
	class := NotDone
	if errors.Is(err, fs.ErrPermission) {
		class = Denied
	}
	walk(err, func(err error) bool {
		if c, is := err.(Classed); is {
			class = max(class, c.Class())
		}
		return false
	})
	return class
}

// Statused is an error that says with which status a command ends, from 1 to 255: for example
// that of the program that the command ran.
type Statused interface {
	error
	ExitStatus() int
}

// The exit codes of every verb. weir run ends as its command does, once it runs.
const (
	ExitDone        = 0 // done, or held
	ExitNotDone     = 1 // not done, or not held
	ExitWrongUse    = 2
	ExitNotPossible = 3 // on this host
)

// ExitCode returns the exit code that an error stands for: its own status, if it has one, or
// that of its class.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	code := 0
	if walk(err, func(err error) bool {
		s, is := err.(Statused)
		if is {
			code = s.ExitStatus()
		}
		return is
	}) {
		return code
	}
	switch ClassOf(err) {
	case WrongUse:
		return ExitWrongUse
	case NotPossible:
		return ExitNotPossible
	}
	return ExitNotDone
}

// HTTPStatus returns the status of an HTTP response that refuses a request with this class
// (RFC 9110, section 15).
func (c Class) HTTPStatus() int {
	switch c {
	case WrongUse:
		return 400 // Bad Request
	case NotPossible:
		return 501 // Not Implemented
	case Denied:
		return 403 // Forbidden
	case NotFound:
		return 404 // Not Found
	}
	return 500 // Internal Server Error
}

// walk calls f for an error and for what it wraps, outer ones first, until f returns true, and
// reports whether it did.
func walk(err error, f func(error) bool) bool {
	if err == nil {
		return false
	}
	if f(err) {
		return true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return walk(err.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			if walk(one, f) {
				return true
			}
		}
	}
	return false
}

// A Misuse says that a request is wrong, whatever the host is.
type Misuse struct{ Message string }

func (e *Misuse) Error() string { return e.Message }

// Class makes it WrongUse.
func (e *Misuse) Class() Class { return WrongUse }

// Misusef makes a Misuse.
func Misusef(format string, args ...any) error { return &Misuse{fmt.Sprintf(format, args...)} }

// An Unsupported error says what this host cannot do, why, and what would change it.
type Unsupported struct {
	Feature string // what was wanted
	Reason  string // what was read on this host
	Remedy  string // what makes it possible; may be empty
}

func (e *Unsupported) Error() string {
	s := e.Feature + ": " + e.Reason
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// Class makes it NotPossible.
func (e *Unsupported) Class() Class { return NotPossible }

// IsUnsupported reports whether an error says that this host cannot do what was asked.
func IsUnsupported(err error) bool {
	var unsupported *Unsupported
	return errors.As(err, &unsupported)
}
