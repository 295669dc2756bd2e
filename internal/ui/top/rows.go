package top

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/near"
	"github.com/weir-io/weir/internal/watch"
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
	depth int
}

// rowsOf chooses and sorts.
func rowsOf(s *watch.Snapshot, o Options) []row {
	var rows []row
	for _, g := range s.Groups {
		if o.Takes(g) {
			rows = append(rows, row{Group: g})
		}
	}
	if o.Tree {
		return nest(rows)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		c := o.compare(a.Group, b.Group)
		if o.Reverse {
			return -c
		}
		return c
	})
	return rows
}

// Takes reports whether a group is shown.
func (o Options) Takes(g *watch.Group) bool {
	if f := strings.ToLower(o.Filter); !strings.Contains(strings.ToLower(g.Target), f) && !strings.Contains(strings.ToLower(g.Path), f) {
		return false
	}
	sum, _ := g.Sum()
	moves := sum != (watch.Rates{})
	switch {
	case o.Active:
		return moves
	case o.All:
		return true
	}
	return moves || g.Limited() || g.Paced != nil
}

// compare has the largest figure first, and names in their order; what is not known comes last.
func (o Options) compare(a, b *watch.Group) int {
	figure := func(g *watch.Group) float64 {
		sum, known := g.Sum()
		switch o.Sort {
		case Read, Write:
			if !known {
				return -1
			}
			if o.Sort == Read {
				return sum.RBPS
			}
			return sum.WBPS
		case Wait:
			if g.Pressure != nil && g.Pressure.Known {
				return g.Pressure.Some
			}
		case Dirty:
			if g.Memory != nil {
				return float64(g.Memory.Dirty)
			}
		default:
			if _, _, percent, known := g.Nearest(); known {
				return percent
			}
			if g.Limited() {
				return -0.5
			}
		}
		return -1
	}
	byName := cmp.Or(strings.Compare(a.Target, b.Target), strings.Compare(a.Path, b.Path))
	if o.Sort == Target {
		return byName
	}
	sa, _ := a.Sum()
	sb, _ := b.Sum()
	return cmp.Or(cmp.Compare(figure(b), figure(a)), cmp.Compare(sb.RBPS+sb.WBPS, sa.RBPS+sa.WBPS), byName)
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
