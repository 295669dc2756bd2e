package stream

import (
	"errors"
	"fmt"
	"unicode/utf8"
	"unsafe"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
)

// Bounds of what one event has, which are checked before any of it is made: an entry of two bytes, as {}, is a struct of
// hundreds.
const (
	listMost    = groupsMost // entries of a list of the event itself: groups, disks, gone
	withinMost  = 4096       // entries of a list within these: devices, expected, limits, below
	entriesMost = 32 << 10   // entries of all such lists together
	fieldsMost  = 256        // fields of an object
	deepMost    = 16         // lists and objects within each other
	textMost    = 64 << 10   // bytes of a text or a figure
)

// A tooMuch says of what an event has more than is read.
type tooMuch struct {
	most int
	what string
}

func (e *tooMuch) Error() string {
	return fmt.Sprintf("weird tells of more than %d %s in one event, and no more are read", e.most, e.what)
}

// A part is a list or an object of an event that has not ended yet.
type part struct {
	list    bool
	entries int // that have begun
}

// A shape counts what an event has.
type shape struct {
	parts  []part
	within int // entries of lists within lists
}

// bounded refuses an event of which more would be made than weird tells. It looks at the bytes alone: whether they
// are JSON, package json finds out.
func bounded(data []byte) error {
	if !utf8.Valid(data) { // package json makes three bytes of each that is none
		return errors.New("what weird says cannot be read: it is not UTF-8, as JSON is")
	}
	s := shape{parts: make([]part, 0, deepMost)}
	end := -1 // of the last text, or the last byte that is of none
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			first := i
			if i = endOfText(data, i); i-first > textMost {
				return &tooMuch{textMost, "bytes of a text"}
			}
		case '{', '}', '[', ']', ',', ':':
			if err := s.take(c); err != nil {
				return err
			}
		default:
			if i-end > textMost {
				return &tooMuch{textMost, "bytes of a figure"}
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
func (s *shape) take(c byte) error {
	switch c {
	case '{', '[':
		if len(s.parts) == deepMost {
			return &tooMuch{deepMost, "lists within each other"}
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
func (s *shape) entry() error {
	if len(s.parts) == 0 {
		return nil
	}
	p := &s.parts[len(s.parts)-1]
	p.entries++
	switch {
	case !p.list:
		if p.entries > fieldsMost {
			return &tooMuch{fieldsMost, "fields of an object"}
		}
	case len(s.parts) <= 2:
		if p.entries > listMost {
			return &tooMuch{listMost, "groups, disks or groups that are gone"}
		}
	default:
		s.within++
		if p.entries > withinMost {
			return &tooMuch{withinMost, "devices, or limits, of one group"}
		}
		if s.within > entriesMost {
			return &tooMuch{entriesMost, "devices and limits"}
		}
	}
	return nil
}

// sizeOf is about how many bytes a known group takes, of which weird said so many.
func sizeOf(k known, text int) int {
	size := text + int(unsafe.Sizeof(watch.Group{})) + len(k.group.Devices)*int(unsafe.Sizeof(watch.Device{}))
	for i := range k.group.Devices {
		d := &k.group.Devices[i]
		size += len(d.Below) * int(unsafe.Sizeof(blkdev.Number{}))
		if d.Rates != nil {
			size += int(unsafe.Sizeof(watch.Rates{}))
		}
		if d.Expected != nil {
			size += int(unsafe.Sizeof(place.Expected{}))
		}
	}
	if k.told != nil {
		size += int(unsafe.Sizeof(held.Told{})) + len(k.told.Limits)*int(unsafe.Sizeof(held.Limit{}))
	}
	return size
}
