// Package note has what the core says beside its results, as data: a front end prints it, or puts
// it into a document.
package note

import (
	"fmt"

	"github.com/weir-io/weir/internal/fault"
)

// A Level says how much a note matters.
type Level string

// The levels.
const (
	Info    Level = "info"    // what is about to happen
	Notice  Level = "note"    // what a reader of the result must know
	Warning Level = "warning" // what may do harm
)

// A Note is one thing to know.
type Note struct {
	Code  string // stable, for programs: "above-limits"
	Level Level
	Text  string // one sentence, for people
	// Remedy is what the user can do about it. A front end spells it behind the text.
	Remedy fault.Remedy
}

// Noticef makes a note of level Notice.
func Noticef(code, format string, args ...any) Note {
	return Note{Code: code, Level: Notice, Text: fmt.Sprintf(format, args...)}
}

// Infof makes a note of level Info.
func Infof(code, format string, args ...any) Note {
	return Note{Code: code, Level: Info, Text: fmt.Sprintf(format, args...)}
}

// Warningf makes a note of level Warning.
func Warningf(code, format string, args ...any) Note {
	return Note{Code: code, Level: Warning, Text: fmt.Sprintf(format, args...)}
}

// With is the note with what the user can do.
func (n Note) With(r fault.Remedy) Note {
	n.Remedy = r
	return n
}

// String is the note as a line for people: its level comes first, unless it is Info.
func (n Note) String() string {
	if n.Level == Info {
		return n.Text
	}
	return string(n.Level) + ": " + n.Text
}
