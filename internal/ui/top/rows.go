package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/near"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/look/watch"
)

// A Column is what rows are sorted by.
type Column string

// The columns, in the order in which they are shown.
const (
	Target Column = "target"
	Read   Column = "read"
	Write  Column = "write"
	Limit  Column = "limit"
	Wait   Column = "wait"
	Dirty  Column = "dirty"
)

// Columns lists them.
func Columns() []Column { return []Column{Target, Read, Write, Limit, Wait, Dirty} }

// ParseColumn reads a column's name.
func ParseColumn(name string) (Column, error) {
	if c := Column(name); slices.Contains(Columns(), c) {
		return c, nil
	}
	var names []string
	for _, c := range Columns() {
		names = append(names, string(c))
	}
	hint := ""
	if like := near.Names(name, names); len(like) > 0 {
		hint = "; did you mean " + like[0] + "?"
	}
	return "", fault.Misusef("sort by %q: write one of %s%s", name, strings.Join(names, ", "), hint)
}

// Options say which groups to show, and in which order.
type Options struct {
	Sort    Column // empty: Limit
	Reverse bool
	Filter  string // part of the target's name or path; empty: all
	Active  bool   // only groups that did I/O in the last window
	All     bool   // also groups that have no limit and did none
	Tree    bool   // in the order of the tree, whatever Sort says
}

// A row is a group at its depth in the tree.
type row struct {
	*watch.Group
	depth, width  int     // its name has so many characters
	figure, moves float64 // what it is sorted by, and how much it reads and writes a second
}

// rowsOf chooses and sorts, into the room of rows that nobody needs any more. facts are those of the groups, in
// their order; nil: they are worked out. Of the rows, the first ones up to most are in their order; 0: all are.
func rowsOf(s *watch.Snapshot, facts []fact, o Options, room []row, most int) []row {
	rows := slices.Grow(room[:0], len(s.Groups))
	for i, g := range s.Groups {
		var own fact
		f := &own
		if facts == nil {
			own = factOf(g)
		} else {
			f = &facts[i]
		}
		if !o.takes(f) {
			continue
		}
		r := row{Group: g, width: f.nameWidth()}
		if !o.Tree {
			r.moves, r.figure = f.sum.RBPS+f.sum.WBPS, f.figureBy(o.Sort)
		}
		rows = append(rows, r)
	}
	if o.Tree {
		return nest(rows)
	}
	compare := o.compare
	if o.Reverse {
		compare = func(a, b *row) int { return o.compare(b, a) }
	}
	if most > 0 && most < len(rows)/4 {
		putFirst(rows, most, compare)
		return rows
	}
	slices.SortFunc(rows, func(a, b row) int { return compare(&a, &b) })
	return rows
}

// putFirst puts so many rows first that are the first in their order, and leaves the others in any order: of
// thousands of rows a terminal shows fifty.
func putFirst(rows []row, most int, compare func(a, b *row) int) {
	for i := range rows {
		n := min(i, most) // rows that are in their order so far
		if i >= most && compare(&rows[i], &rows[most-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(rows[:n], &rows[i], func(a row, b *row) int { return compare(&a, b) })
		one := rows[i]
		if n == most {
			n--
			rows[i] = rows[n]
		}
		copy(rows[at+1:n+1], rows[at:n])
		rows[at] = one
	}
}

// Takes reports whether a group is shown.
func (o Options) Takes(g *watch.Group) bool {
	f := factOf(g)
	return o.takes(&f)
}

func (o Options) takes(f *fact) bool {
	if o.Filter != "" {
		filter := strings.ToLower(o.Filter)
		if !strings.Contains(strings.ToLower(f.Target), filter) && !strings.Contains(strings.ToLower(f.path), filter) {
			return false
		}
	}
	moves := f.sum != (watch.Rates{})
	switch {
	case o.Active:
		return moves
	case o.All:
		return true
	}
	return moves || f.limited || f.Paced != nil
}

// FigureOf is what a group is sorted by in a column; negative: it is not known, or the column is
// that of names.
func FigureOf(g *watch.Group, by Column) float64 {
	sum, known := g.Sum()
	return figureOf(g, by, sum, known)
}

// figureOf is FigureOf of a group whose rates are summed up.
func figureOf(g *watch.Group, by Column, sum watch.Rates, known bool) float64 {
	switch {
	case by == Read && known:
		return sum.RBPS
	case by == Write && known:
		return sum.WBPS
	case by == Wait && g.Pressure != nil && g.Pressure.Known:
		return g.Pressure.Some
	case by == Dirty && g.Memory != nil:
		return float64(g.Memory.Dirty)
	case by == Limit || by == "":
		if _, _, percent, known := g.Nearest(); known {
			return percent
		}
		if g.Limited() {
			return -0.5
		}
	}
	return -1
}

// Groups are the groups of a snapshot that are shown, in their order.
func (o Options) Groups(s *watch.Snapshot) []*watch.Group {
	rows := rowsOf(s, nil, o, nil, 0)
	groups := make([]*watch.Group, len(rows))
	for i, r := range rows {
		groups[i] = r.Group
	}
	return groups
}

// compare has the largest figure first, and names in their order; what is not known comes last. No two rows
// are the same to it, because no two groups of a snapshot have one path.
func (o Options) compare(a, b *row) int {
	if o.Sort != Target {
		if c := cmp.Or(cmp.Compare(b.figure, a.figure), cmp.Compare(b.moves, a.moves)); c != 0 {
			return c
		}
	}
	return cmp.Or(strings.Compare(a.Target, b.Target), strings.Compare(a.Path, b.Path))
}

// nest sorts rows as a tree, by path, and finds their depths.
func nest(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int {
		return slices.Compare(strings.Split(strings.Trim(a.Path, "/"), "/"), strings.Split(strings.Trim(b.Path, "/"), "/"))
	})
	var above []string
	for i, r := range rows {
		for len(above) > 0 && !strings.HasPrefix(r.Path, strings.TrimSuffix(above[len(above)-1], "/")+"/") {
			above = above[:len(above)-1]
		}
		rows[i].depth = len(above)
		above = append(above, r.Path)
	}
	return rows
}
