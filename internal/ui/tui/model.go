package tui

import (
	"time"

	"github.com/weir-io/weir/internal/look/trace"
)

// model is the view's state.
type model struct {
	title         string
	window        time.Duration
	frame         trace.Frame
	width, height int // of the terminal; 0: not known yet
}

// over reports whether the window has ended.
func (m model) over() bool { return m.frame.Passed >= m.window }

// A press is what a key asks for.
type press int

const (
	pressNothing press = iota
	pressQuit
	pressSuspend
)

// Keys that terminals send as one byte.
const (
	ctrlC  = 0x03
	ctrlZ  = 0x1a
	escape = 0x1b
)

// pressed says what the bytes of some keys ask for. Keys such as arrows are more than one
// byte, the first of them escape; the key of that name is one.
func pressed(bytes []byte) press {
	if len(bytes) == 1 && bytes[0] == escape {
		return pressQuit
	}
	for _, b := range bytes {
		switch b {
		case escape:
			return pressNothing
		case 'q', 'Q', ctrlC:
			return pressQuit
		case ctrlZ:
			return pressSuspend
		}
	}
	return pressNothing
}
