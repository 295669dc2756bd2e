package top

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Widths of columns, and of what is between them.
const (
	targetLeast  = 16
	figureWidth  = 8 // "9.98 MB", "1.23 TB"
	opsWidth     = 9
	waitWidth    = 5
	percentWidth = 15 // "write ops 100 %"
	barWidth     = 10
	heldLeast    = 20
	flagWidth    = 2 // " !"
	between      = 2
)

// A layout is which columns a width has room for.
type layout struct {
	target           int
	wait, dirty, bar bool
	ops              bool
	held             int // 0: none
}

// layoutOf fits the columns into a width; 0: there is no bound, and names are as long as longest.
func layoutOf(width, longest, held int) layout {
	if width <= 0 {
		return layout{target: max(targetLeast, longest), wait: true, dirty: true, bar: true, ops: true, held: max(heldLeast, held)}
	}
	l := layout{}
	left := width - 2*(figureWidth+between) - percentWidth - flagWidth - between
	take := func(n, least int) bool {
		if left-n-between < least {
			return false
		}
		left -= n + between
		return true
	}
	l.wait = take(waitWidth, targetLeast+4)
	l.dirty = take(figureWidth, targetLeast+6)
	l.bar = l.dirty && take(barWidth-1, targetLeast+8)
	if l.bar && take(heldLeast, targetLeast+8) {
		l.held = heldLeast
		left += flagWidth
	}
	l.ops = l.held > 0 && take(2*opsWidth+between, 40)
	if l.held > 0 && left > longest { // what names do not need
		more := min(left-max(longest, targetLeast), max(0, held-l.held))
		l.held, left = l.held+more, left-more
	}
	l.target = min(max(left, 1), max(longest, targetLeast))
	return l
}

// lines makes the table of some rows of all, with its header first. The column of names has room
// for those of all rows, so that it stays where it is when others are shown.
func lines(all, rows []row, width int) []string {
	longest, longestHeld := 0, 0
	for _, r := range all {
		longest = max(longest, 2*r.depth+r.width)
	}
	for _, r := range rows {
		longestHeld = max(longestHeld, utf8.RuneCountInString(heldText(r.Group)))
	}
	l := layoutOf(width, longest, longestHeld)
	text := []string{l.line("TARGET", "READ/s", "WRITE/s", "READ OPS", "WRITE OPS", l.limitHead(), "WAIT", "DIRTY", "EXPECTED TO HOLD")}
	for _, r := range rows {
		f := FiguresOf(r.Group)
		text = append(text, l.line(r.name(), f.Read, f.Write, f.ReadOps, f.WriteOps, l.limitText(r.Group), f.Wait, f.Dirty, f.Held))
	}
	return text
}

func (r row) name() string { return strings.Repeat("  ", r.depth) + plain.Line(r.Target) }

// line puts cells into the columns that there are.
func (l layout) line(target, read, write, readOps, writeOps, of, wait, dirty, held string) string {
	gap := strings.Repeat(" ", between)
	cells := []string{left(target, l.target), right(read, figureWidth), right(write, figureWidth)}
	if l.ops {
		cells = append(cells, right(readOps, opsWidth), right(writeOps, opsWidth))
	}
	cells = append(cells, right(of, l.ofWidth()))
	if l.wait {
		cells = append(cells, right(wait, waitWidth))
	}
	if l.dirty {
		cells = append(cells, right(dirty, figureWidth))
	}
	if l.held > 0 {
		cells = append(cells, left(held, l.held))
	}
	return strings.TrimRight(strings.Join(cells, gap), " ")
}

// ofWidth is the width of the column with the nearest limit.
func (l layout) ofWidth() int {
	width := percentWidth
	if l.bar {
		width += barWidth + 1
	}
	if l.held == 0 {
		width += flagWidth
	}
	return width
}

// flag marks a group that needs a look, where no column says what of its limits is expected to hold.
func (l layout) flag(g *watch.Group) string {
	switch {
	case l.held > 0:
		return ""
	case LookOf(g) != Fine:
		return " !"
	}
	return strings.Repeat(" ", flagWidth)
}

func (l layout) limitHead() string {
	switch {
	case l.bar:
		return left("OF LIMIT", l.ofWidth())
	case l.held == 0:
		return "OF LIMIT" + strings.Repeat(" ", flagWidth)
	}
	return "OF LIMIT"
}

// limitText says how near the group is to its nearest limit: "write ██████████ 100 %".
func (l layout) limitText(g *watch.Group) string {
	_, k, percent, known := g.Nearest()
	switch {
	case !g.Limited() && l.bar:
		return left(unknown, l.ofWidth())
	case !g.Limited():
		return unknown + l.flag(g)
	case !known && l.bar:
		return left(left("limit, no rate", percentWidth+barWidth+1)+l.flag(g), l.ofWidth())
	case !known:
		return "limit, no rate" + l.flag(g)
	}
	number := PercentText(percent)
	if !l.bar {
		return KeyText(k) + " " + number + l.flag(g)
	}
	bar := left(cli.Bar(min(percent/100, 1), barWidth), barWidth)
	return left(KeyText(k), len("write ops")) + " " + bar + " " + right(number, percentWidth-len("write ops")-1) + l.flag(g)
}

// left and right fill a cell, and cut what is too long for it.
func left(s string, width int) string {
	s = cut(s, width)
	return s + strings.Repeat(" ", width-utf8.RuneCountInString(s))
}

func right(s string, width int) string {
	s = cut(s, width)
	return strings.Repeat(" ", width-utf8.RuneCountInString(s)) + s
}

func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width <= 1 {
		return string([]rune(s)[:max(width, 0)])
	}
	return string([]rune(s)[:width-1]) + "…"
}
