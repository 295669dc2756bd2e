package top

import (
	"cmp"
	"strings"

	"github.com/weir-io/weir/internal/agent/held"
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
	toldWidth    = 8 // "NOT HELD"
	planMost     = 20
	flagWidth    = 2 // " !"
	between      = 2
)

// A layout is which columns a width has room for.
type layout struct {
	target           int
	wait, dirty, bar bool
	ops              bool
	held             int // 0: none
	told             bool
	plan             int // 0: none
}

// A need is how much room cells would take, in characters.
type need struct {
	name, held int
	plan       int  // 0: no group has a plan
	told       bool // there is something to say of measurements
}

// layoutOf fits the columns into a width; 0: there is no bound, and names are as long as the longest.
func layoutOf(width int, n need) layout {
	longest, held := n.name, n.held
	if width <= 0 {
		return layout{target: max(targetLeast, longest), wait: true, dirty: true, bar: true, ops: true, held: max(heldLeast, held), told: n.told, plan: n.plan}
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
	l.told = l.held > 0 && n.told && take(toldWidth, targetLeast+8)
	if l.held > 0 && n.plan > 0 && take(min(n.plan, planMost), targetLeast+8) {
		l.plan = min(n.plan, planMost)
	}
	l.ops = l.held > 0 && take(2*opsWidth+between, 40)
	if l.held > 0 && left > longest { // what names do not need
		more := min(left-max(longest, targetLeast), max(0, held-l.held))
		l.held, left = l.held+more, left-more
	}
	l.target = min(max(left, 1), max(longest, targetLeast))
	return l
}

// A beside is what a table has beside the groups of a snapshot.
type beside struct {
	plans    map[string]string    // their names, by the groups' paths
	weird    map[string]held.Told // what weird has measured
	measured *Measuring           // nil: nothing is measured here
}

func (b beside) plan(path string) string { return plain.Line(b.plans[path]) }

// told is what was measured of a group; empty: nothing is told.
func (b beside) told(path string) string {
	if b.measured == nil && b.weird == nil {
		return ""
	}
	return toldText(b.Of(path))
}

// lines makes the table of some rows of all, with its header first. The column of names has room
// for those of all rows, so that it stays where it is when others are shown.
func lines(all, rows []row, b beside, width int) []string {
	n := need{}
	for _, r := range all {
		n.name = max(n.name, 2*r.depth+r.width)
	}
	for _, r := range rows {
		n.held = max(n.held, plain.Width(heldText(r.Group)))
		n.plan = max(n.plan, plain.Width(b.plan(r.Path)))
		n.told = n.told || b.told(r.Path) != ""
	}
	if n.plan > 0 {
		n.plan = max(n.plan, len("PLAN"))
	}
	l := layoutOf(width, n)
	text := []string{l.line(cells{target: "TARGET", figures: Figures{Read: "READ/s", Write: "WRITE/s", ReadOps: "READ OPS", WriteOps: "WRITE OPS", Wait: "WAIT", Dirty: "DIRTY", Held: "EXPECTED TO HOLD"}, of: l.limitHead(), told: "MEASURED", plan: "PLAN"})}
	for _, r := range rows {
		text = append(text, l.line(cells{r.name(), FiguresOf(r.Group), l.limitText(r.Group, b.told(r.Path)), cmp.Or(b.told(r.Path), unknown), cmp.Or(b.plan(r.Path), unknown)}))
	}
	return text
}

// cells are those of a line.
type cells struct {
	target         string
	figures        Figures
	of, told, plan string
}

func (r row) name() string { return strings.Repeat("  ", r.depth) + plain.Line(r.Target) }

// line puts cells into the columns that there are.
func (l layout) line(c cells) string {
	gap := strings.Repeat(" ", between)
	f := c.figures
	all := []string{left(c.target, l.target), right(f.Read, figureWidth), right(f.Write, figureWidth)}
	if l.ops {
		all = append(all, right(f.ReadOps, opsWidth), right(f.WriteOps, opsWidth))
	}
	all = append(all, right(c.of, l.ofWidth()))
	if l.wait {
		all = append(all, right(f.Wait, waitWidth))
	}
	if l.dirty {
		all = append(all, right(f.Dirty, figureWidth))
	}
	if l.held > 0 {
		all = append(all, left(f.Held, l.held))
	}
	if l.told {
		all = append(all, left(c.told, toldWidth))
	}
	if l.plan > 0 {
		all = append(all, left(c.plan, l.plan))
	}
	return strings.TrimRight(strings.Join(all, gap), " ")
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
func (l layout) flag(g *watch.Group, told string) string {
	switch {
	case l.held > 0:
		return ""
	case LookOf(g) != Fine, told == notHeldWord:
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
func (l layout) limitText(g *watch.Group, told string) string {
	_, k, percent, known := g.Nearest()
	switch {
	case !g.Limited() && l.bar:
		return left(unknown, l.ofWidth())
	case !g.Limited():
		return unknown + l.flag(g, told)
	case !known && l.bar:
		return left(left("limit, no rate", percentWidth+barWidth+1)+l.flag(g, told), l.ofWidth())
	case !known:
		return "limit, no rate" + l.flag(g, told)
	}
	number := PercentText(percent)
	if !l.bar {
		return KeyText(k) + " " + number + l.flag(g, told)
	}
	bar := left(cli.Bar(min(percent/100, 1), barWidth), barWidth)
	return left(KeyText(k), len("write ops")) + " " + bar + " " + right(number, percentWidth-len("write ops")-1) + l.flag(g, told)
}

// left and right fill a cell, and cut what is too long for it.
func left(s string, width int) string {
	s = plain.Cut(s, width)
	return s + strings.Repeat(" ", width-plain.Width(s))
}

func right(s string, width int) string {
	s = plain.Cut(s, width)
	return strings.Repeat(" ", width-plain.Width(s)) + s
}
