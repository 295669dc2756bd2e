package top

import (
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
)

// How lines are painted (ECMA-48, SGR).
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	normal = "\x1b[0m"
)

// exceeded is how much of its limit, in percent, a group does that is not held: one that is held
// can be a little above it in one second.
const exceeded = 120

// A Look says whether a group needs one.
type Look int

// The looks.
const (
	Fine     Look = iota
	NotHeld       // a limit is not expected to hold all I/O
	Exceeded      // the group does more than a limit allows
)

// LookOf says whether a group needs a look.
func LookOf(g *watch.Group) Look {
	if _, _, percent, known := g.Nearest(); known && percent >= exceeded {
		return Exceeded
	}
	for _, d := range g.Devices {
		for _, k := range limit.Keys {
			if _, bound := d.Limit.Get(k).Number(); !bound || d.Expected == nil {
				continue
			}
			if _, all := d.Holders(k); !all {
				return NotHeld
			}
		}
	}
	return Fine
}

// colorOf marks groups that need a look.
func colorOf(g *watch.Group) string {
	switch LookOf(g) {
	case Exceeded:
		return red
	case NotHeld:
		return yellow
	}
	return ""
}

func (s *Screen) paint(color, line string) string {
	if !s.Color || color == "" {
		return line
	}
	return color + line + normal
}

// cutPainted cuts a line that may be painted whole.
func cutPainted(line string, width int) string {
	if !strings.HasPrefix(line, "\x1b[") {
		return plain.Cut(line, width)
	}
	end := strings.IndexByte(line, 'm') + 1
	return line[:end] + plain.Cut(strings.TrimSuffix(line[end:], normal), width) + normal
}
