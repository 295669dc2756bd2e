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
	e := errorText{text: err.Error()}
	e.walk(err)
	return e.text
}

// An errorText goes through the text of an error from its beginning.
type errorText struct {
	text string
	done int // bytes of the text
}

// walk escapes what an error says around those that it wraps, in the order of the text.
func (e *errorText) walk(err error) {
	var inner []error
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		inner = []error{err.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = err.Unwrap()
	}
	rest := err.Error()
	for _, one := range inner {
		if one == nil {
			continue
		}
		before, after, ok := strings.Cut(rest, one.Error())
		if !ok { // it says what that one says in other words
			e.walk(one)
			continue
		}
		e.escape(before)
		e.walk(one)
		rest = after
	}
	e.escape(rest)
}

// escape makes one line of a part of the text. A line break alone is between joined errors.
func (e *errorText) escape(part string) {
	at := strings.Index(e.text[e.done:], part)
	if at < 0 || part == "\n" {
		return
	}
	line := Line(part)
	at += e.done
	e.text, e.done = e.text[:at]+line+e.text[at+len(part):], at+len(line)
}
