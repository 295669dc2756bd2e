package top

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// unknown stands for what is not known, or not there.
const unknown = "–"

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
		longest = max(longest, 2*r.depth+utf8.RuneCountInString(plain.Line(r.Target)))
	}
	for _, r := range rows {
		longestHeld = max(longestHeld, utf8.RuneCountInString(heldText(r.Group)))
	}
	l := layoutOf(width, longest, longestHeld)
	text := []string{l.line("TARGET", "READ/s", "WRITE/s", "READ OPS", "WRITE OPS", l.limitHead(), "WAIT", "DIRTY", "EXPECTED TO HOLD")}
	for _, r := range rows {
		sum, known := r.Sum()
		figure := func(v float64, text func(float64) string) string {
			if !known {
				return unknown
			}
			return text(v)
		}
		text = append(text, l.line(r.name(), figure(sum.RBPS, limit.FormatMeasured), figure(sum.WBPS, limit.FormatMeasured), figure(sum.RIOPS, opsText),
			figure(sum.WIOPS, opsText), l.limitText(r.Group), waitText(r.Pressure), dirtyText(r.Memory), heldText(r.Group)))
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
	case colorOf(g) != "":
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
	number := percentText(percent)
	if !l.bar {
		return keyText(k) + " " + number + l.flag(g)
	}
	bar := left(cli.Bar(min(percent/100, 1), barWidth), barWidth)
	return left(keyText(k), len("write ops")) + " " + bar + " " + right(number, percentWidth-len("write ops")-1) + l.flag(g)
}

func keyText(k limit.Key) string {
	if k.IsOps() {
		return k.Direction() + " ops"
	}
	return k.Direction()
}

func percentText(p float64) string {
	if p > 9999 {
		return ">9999 %"
	}
	return fmt.Sprintf("%.0f %%", math.Floor(p+0.5))
}

func opsText(v float64) string { return cli.Count(uint64(v + 0.5)) }

func waitText(p *watch.Pressure) string {
	if p == nil || !p.Known {
		return unknown
	}
	return percentText(p.Some)
}

func dirtyText(m *watch.Memory) string {
	if m == nil {
		return unknown
	}
	return limit.FormatMeasured(float64(m.Dirty))
}

// heldText says what of the group's limits is expected to be held: of the limit that holds least,
// and else of the nearest one.
func heldText(g *watch.Group) string {
	if !g.Limited() {
		return unknown
	}
	if g.Paced != nil && g.Paced.Lapsed != "" {
		return "pacer lapsed"
	}
	nearest, k, _, known := g.Nearest()
	text := ""
	if known && nearest.Expected != nil {
		text = nearest.Expected.Brief(k) + byText(nearest, k)
	}
	for _, d := range g.Devices {
		for _, k := range limit.Keys {
			if _, bound := d.Limit.Get(k).Number(); !bound || d.Expected == nil {
				continue
			}
			if _, all := d.Holders(k); !all {
				return k.Direction() + ": " + d.Expected.Brief(k)
			}
			if text == "" {
				text = d.Expected.Brief(k) + byText(d, k)
			}
		}
	}
	if text == "" {
		return "not known"
	}
	return text
}

// byText names who holds: " (kernel)", " (pacer)", " (kernel, pacer)".
func byText(d watch.Device, k limit.Key) string {
	by, _ := d.Holders(k)
	kernel, pacer := false, false
	for _, m := range by {
		pacer = pacer || m == "pacer"
		kernel = kernel || m != "pacer"
	}
	switch {
	case kernel && pacer:
		return " (kernel, pacer)"
	case kernel:
		return " (kernel)"
	case pacer:
		return " (pacer)"
	}
	return ""
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
