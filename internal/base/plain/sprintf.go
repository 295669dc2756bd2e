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
	return Reworded(err, func(error) (text string, is bool) { return "", false })
}

// Reworded is Error, and words has other words for some of the errors, made safe like these. An error with a
// method Plain says itself what is so safe.
//
// An error that says in words of its own what it wraps is one line.
func Reworded(err error, words func(error) (text string, is bool)) string {
	if text, is := words(err); is {
		return text
	}
	var inner []error
	switch err := err.(type) {
	case interface{ Plain() string }:
		return err.Plain()
	case interface{ Unwrap() error }:
		inner = []error{err.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = err.Unwrap()
	}
	var text strings.Builder
	rest := err.Error()
	for i, one := range inner {
		if one == nil {
			continue
		}
		before, after, ok := strings.Cut(rest, one.Error())
		if !ok {
			return Line(err.Error())
		}
		if i > 0 && before == "\n" { // between errors that are joined
			text.WriteString(before)
		} else {
			text.WriteString(Line(before))
		}
		text.WriteString(Reworded(one, words))
		rest = after
	}
	text.WriteString(Line(rest))
	return text.String()
}
