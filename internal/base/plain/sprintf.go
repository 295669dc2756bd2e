package plain

import (
	"fmt"
	"io"
	"strings"
)

// Sprintf is fmt.Sprintf, and no argument begins another line: each becomes Line of what it would
// be. An error that joins others stays in as many lines as it joins (Error). Line breaks of the
// format stay.
func Sprintf(format string, args ...any) string {
	safe := make([]any, len(args))
	for i, a := range args {
		if safe[i] = a; !isNumber(a) {
			safe[i] = oneLine{a}
		}
	}
	return fmt.Sprintf(format, safe...)
}

// isNumber reports whether a is what a format may take as a width (%*d), or what has no text of
// another's in it.
func isNumber(a any) bool {
	switch a.(type) {
	case int, int64, uint64, float64, bool:
		return true
	}
	return false
}

// oneLine formats as what it has, in one line.
type oneLine struct{ of any }

func (l oneLine) Format(to fmt.State, verb rune) {
	if err, ok := l.of.(error); ok && (verb == 'v' || verb == 's') {
		_, _ = io.WriteString(to, Error(err))
		return
	}
	_, _ = io.WriteString(to, Line(fmt.Sprintf(fmt.FormatString(to, verb), l.of)))
}

// Error is the text of an error, in one line for each of the errors that it joins: what is
// another's in them, such as the name of a file, begins none.
func Error(err error) string {
	e := errorText{rest: err.Error()}
	e.walk(err)
	e.line(e.rest)
	return e.text.String()
}

// An errorText goes through the text of an error from its beginning.
type errorText struct {
	text strings.Builder // what was gone through, made safe
	rest string          // what was not, as it is
}

// walk goes through what an error says around those that it wraps, in the order of the text. What it cannot
// find there is said in other words by an error around it, and is left to that one.
func (e *errorText) walk(err error) {
	var inner []error
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		inner = []error{err.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = err.Unwrap()
	}
	rest := err.Error()
	for i, one := range inner {
		if one == nil {
			continue
		}
		before, after, ok := strings.Cut(rest, one.Error())
		if !ok { // it says what that one says in other words
			e.walk(one)
			continue
		}
		if e.pass(before, before == "\n" && i > 0); one.Error() != "" {
			e.walk(one)
		}
		rest = after
	}
	e.pass(rest, false)
}

// pass goes on to the end of a part of the text, and makes one line of that part, and one of what it has passed over.
// A line break that is all between two joined errors stays.
func (e *errorText) pass(part string, between bool) {
	before, after, ok := strings.Cut(e.rest, part)
	if !ok {
		return
	}
	e.line(before)
	if between {
		e.text.WriteString(part)
	} else {
		e.line(part)
	}
	e.rest = after
}

func (e *errorText) line(part string) { e.text.WriteString(Line(part)) }
