package plain

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of what a unit's file may hold, in bytes: a value (the longest path, with each byte
// escaped), and all of it (systemd's own bound for one line, LONG_LINE_MAX).
const (
	valueMost = 4 * 4096
	unitMost  = 1 << 20
)

// A ValueError says why systemd is not given a text.
type ValueError struct {
	What string // "the place", "the property Description"
	Text string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%s is %s: systemd takes one printable line of UTF-8 with at most %d bytes and no backslash at its end; "+
		"name it another way (a symbolic link, a device, MAJOR:MINOR)", e.What, strconv.QuoteToGraphic(Short(e.Text, describedMost)), valueMost)
}

// Value refuses a text that cannot be a value in a unit's file. The error is a *ValueError.
func Value(what, text string) error {
	if len(text) > valueMost || !isValue(text) {
		return &ValueError{what, text}
	}
	return nil
}

// Unit refuses the text of a whole unit or drop-in if one of its lines is not what weir meant
// to write: something in it has ended a line, or is no UTF-8.
func Unit(text string) error {
	if len(text) > unitMost {
		return fmt.Errorf("the unit's file would have %d bytes; systemd reads at most %d", len(text), unitMost)
	}
	for line := range strings.Lines(text) {
		if !isValue(strings.TrimSuffix(line, "\n")) {
			return &ValueError{"a line of the unit's file", line}
		}
	}
	return nil
}

func isValue(text string) bool { return !has(text, isOdd) && !strings.HasSuffix(text, `\`) }
