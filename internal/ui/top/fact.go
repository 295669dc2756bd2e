package top

import (
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/look/watch"
)

// A fact is what a view needs of a group, worked out once: of thousands of groups most are the same in one snapshot after
// the other, and nothing of them is looked at again.
type fact struct {
	*watch.Group
	path    string
	sum     watch.Rates
	known   bool // the sum
	limited bool
	line    *curve // on a screen; nil: it has none yet

	by     Column // figure
	figure float64
	sorted bool // figure was worked out
	width  int  // of its name, in columns; 0: it was not worked out
}

func factOf(g *watch.Group) fact {
	f := fact{Group: g, path: g.Path, limited: g.Limited()}
	f.sum, f.known = g.Sum()
	return f
}

// factsOf are the facts of a snapshot's groups, in their order, made in the place of those of the snapshot before.
func factsOf(s *watch.Snapshot, was []fact) []fact {
	facts := was[:min(len(was), len(s.Groups))]
	clear(was[len(facts):]) // they keep no group in memory
	for i, g := range s.Groups {
		if i == len(facts) {
			facts = append(facts, factOf(g))
			continue
		}
		f := &facts[i]
		if f.Group == g {
			continue
		}
		now := factOf(g)
		if f.path == g.Path {
			now.line = f.line
		}
		*f = now
	}
	return facts
}

// figureBy is what the group is sorted by in a column; see FigureOf.
func (f *fact) figureBy(by Column) float64 {
	if !f.sorted || f.by != by {
		f.by, f.figure, f.sorted = by, figureOf(f.Group, by, f.sum, f.known), true
	}
	return f.figure
}

// nameWidth is the width of the group's name.
func (f *fact) nameWidth() int {
	if f.width == 0 {
		f.width = plain.Width(plain.Line(f.Target))
	}
	return f.width
}
