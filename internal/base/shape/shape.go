// Package shape bounds JSON of others by what it has, before anything is made of it. A bound on its bytes is not enough: an
// entry of two bytes, as {}, becomes a struct of hundreds.
package shape

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Bounds say what JSON may have.
type Bounds struct {
	List    int // entries of a list of the document itself
	Within  int // entries of a list within such a list
	Entries int // entries of all lists within lists together
	Fields  int // fields of an object
	Deep    int // lists and objects within each other
	Text    int // bytes of a text or a figure
}

// An Error says of what JSON has more than it may.
type Error struct {
	Most int
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("more than %d %s", e.Most, e.What) }

// errNotUTF8 is of JSON that is none. Of each wrong byte package json would make three.
var errNotUTF8 = errors.New("it is not UTF-8, as JSON is")

// A part is a list or an object that has not ended yet.
type part struct {
	list    bool
	entries int // that have begun
}

// A count counts what JSON has.
type count struct {
	most   Bounds
	parts  []part
	within int // entries of lists within lists
}

// Check refuses JSON that has more than it may: with an *Error, or if it is not UTF-8. It looks at the bytes alone: whether
// they are JSON, package json finds out.
func Check(data []byte, most Bounds) error {
	if !utf8.Valid(data) {
		return errNotUTF8
	}
	s := count{most: most}
	end := -1 // of the last text, or the last byte that is of none
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			first := i
			if i = endOfText(data, i); i-first > most.Text {
				return &Error{most.Text, "bytes of a text"}
			}
		case '{', '}', '[', ']', ',', ':':
			if err := s.take(c); err != nil {
				return err
			}
		default:
			if i-end > most.Text {
				return &Error{most.Text, "bytes of a figure"}
			}
			continue
		}
		end = i
	}
	return nil
}

// endOfText is where the quote is that ends the text that begins at first, or the end of the data.
func endOfText(data []byte, first int) int {
	for i := first + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(data)
}

// take takes a byte between texts.
func (s *count) take(c byte) error {
	switch c {
	case '{', '[':
		if len(s.parts) == s.most.Deep {
			return &Error{s.most.Deep, "lists within each other"}
		}
		s.parts = append(s.parts, part{list: c == '['})
		return s.entry() // or it is empty
	case '}', ']':
		s.parts = s.parts[:max(len(s.parts)-1, 0)]
	case ',':
		return s.entry()
	}
	return nil
}

// entry counts one more entry of the last part.
func (s *count) entry() error {
	if len(s.parts) == 0 {
		return nil
	}
	p := &s.parts[len(s.parts)-1]
	p.entries++
	switch {
	case !p.list:
		if p.entries > s.most.Fields {
			return &Error{s.most.Fields, "fields of an object"}
		}
	case len(s.parts) <= 2:
		if p.entries > s.most.List {
			return &Error{s.most.List, "entries of a list"}
		}
	default:
		s.within++
		if p.entries > s.most.Within {
			return &Error{s.most.Within, "entries of a list within a list"}
		}
		if s.within > s.most.Entries {
			return &Error{s.most.Entries, "entries of lists within lists"}
		}
	}
	return nil
}
