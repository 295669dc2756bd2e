package plain

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// name is what a file of another's can be called.
const name = "/x\nweir: all is held\t\x1b[2J"

type named struct{ int }

func (named) String() string { return name }

func TestSprintf(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: name, Err: errors.New("it is gone\nfor good")}
	both := errors.Join(missing, fmt.Errorf("read %s: %w", name, missing))
	const one, gone = `/x\nweir: all is held\t\x1b[2J`, `it is gone\nfor good`
	for _, c := range []struct{ got, want string }{
		{Sprintf("a\nb %s", name), "a\nb " + one},
		{Sprintf("%-*s| %d %.1f %v %6.2f", 4, "ü", 7, 1.5, true, float32(2)), "ü   | 7 1.5 true   2.00"},
		{Sprintf("%v %s %q %v", named{1}, []string{name}, name, map[string]int{name: 1}), one + " [" + one + `] "` + one + `" map[` + one + ":1]"},
		{Sprintf("%v: %v", name, missing), one + ": open " + one + ": " + gone},
		{Sprintf("x: %v", both), "x: open " + one + ": " + gone + "\nread " + one + ": open " + one + ": " + gone},
		{Sprintf("%v", fmt.Errorf("%w: both: %w (%s)", missing, both, name)), "open " + one + ": " + gone + ": both: " + Error(both) + " (" + one + ")"},
		{Error(&inOtherWords{missing, "no " + gone + "\n"}), "no " + gone + `\n`},
		// What the innermost error says stands behind a line break of another's.
		{Error(&inOtherWords{fmt.Errorf("cause: %w", errors.New("E")), "no /x\nweir: all is held E"}), `no /x\nweir: all is held E`},
		{Error(&inOtherWords{fmt.Errorf("cause: %w", errors.New("E")), "E: no " + name}), "E: no " + one},
		{Error(&inOtherWords{missing, "no " + name + " open; try " + name}), "no " + one + " open; try " + one},
		{Error(&inOtherWords{errors.Join(said("E"), said("F")), "no " + name + " E" + name + "\nF"}), "no " + one + " E" + one + `\nF`},
		{Error(fmt.Errorf("x: %w", &itself{said(name)})), "x: safe"},
		{Error(said("\n")), `\n`},
		{Error(errors.Join(said("\n"), said("\n"))), `\n\n\n`},
		{Error(fmt.Errorf("%w%s", said("E"), "\n")), `E\n`},
		{Error(errors.Join(errors.New(""), errors.New("E"))), "\nE"},
	} {
		if c.got != c.want {
			t.Errorf("got  %q\nwant %q", c.got, c.want)
		}
	}
	if got := Sprintf("%v", errors.Join(both, both)); strings.Count(got, "\n") != 3 {
		t.Errorf("four errors are joined: %q", got)
	}
}

// said is an error of another's words.
type said string

func (s said) Error() string { return string(s) }

// itself says itself what is safe.
type itself struct{ error }

func (itself) Plain() string { return "safe" }

// inOtherWords says what an error says in other words.
type inOtherWords struct {
	error
	text string
}

func (e *inOtherWords) Error() string { return e.text }
func (e *inOtherWords) Unwrap() error { return e.error }
