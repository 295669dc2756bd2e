package watch

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A named group has its path beside it, which takes a while to make for thousands each second.
type named struct {
	at   cgroupfs.Group
	path string
}

func namedOf(g cgroupfs.Group) named { return named{g, g.Path()} }

func allNamed(groups []cgroupfs.Group) []named {
	all := make([]named, len(groups))
	for i, g := range groups {
		all[i] = namedOf(g)
	}
	return all
}

// look reads the counters of a group and of those below it. On v2 a group's counters include those
// of the groups below: where they have not changed (moved is false), nothing below has done
// anything, and it is not read. A v2 group without counters has none below it either. Above is the
// entry of the group above; nil: it has none.
func (w *Watcher) look(g named, above *entry, now time.Time, moved bool) error {
	flat := w.o.IO.Version == cgroupfs.V1
	var e *entry
	if flat || !g.at.IsRoot() {
		var err error
		e, err = w.entry(g, now, moved)
		w.failed(err)
		if e == nil && above != nil && above.watch == noWatch {
			above.listed = false
		}
		if e == nil {
			return nil
		}
		if e.above = above; e.leaf && w.staysLeaf(e) {
			if flat {
				w.settle(e)
			}
			return nil
		}
		moved = flat || e.moved
	}
	children, err := w.children(g.at, e)
	if e != nil {
		e.leaf, e.turn = err == nil && len(children) == 0, w.turn(e)
	}
	switch {
	case err != nil && g.at.IsRoot():
		return err
	case err != nil:
		w.failed(err)
		return nil
	}
	if flat {
		return w.lookBelow(e, children, now)
	}
	for _, c := range children {
		if err := w.look(c, e, now, moved); err != nil {
			return err
		}
	}
	return nil
}

// staysLeaf reports whether not to look for groups below one that had none.
func (w *Watcher) staysLeaf(e *entry) bool {
	if e.watch != noWatch {
		return e.listed
	}
	return !e.moved && w.round%leafEvery != e.turn
}

// isListed reports whether the groups below one are known: none can come or go without a notice.
func (e *entry) isListed() bool { return e.listed && e.watch != noWatch }

// children lists the groups below one. On v1 all of them are read each time, so one that is gone is
// noticed: as long as none is, and there are as many as when they were last listed, they are the same.
func (w *Watcher) children(g cgroupfs.Group, e *entry) ([]named, error) {
	if e != nil && e.isListed() {
		e.counted = false
		return e.below, nil
	}
	if e != nil && e.listed && w.o.IO.Version == cgroupfs.V1 {
		if n, known := g.ChildCount(); known && n == len(e.below) {
			e.counted = true
			return e.below, nil
		}
	}
	groups, err := g.Children()
	if err != nil {
		if e != nil {
			e.listed = false
		}
		return nil, err
	}
	if e == nil {
		return allNamed(groups), nil
	}
	if !slices.EqualFunc(groups, e.below, func(g cgroupfs.Group, n named) bool { return g == n.at }) {
		e.below, e.kids = allNamed(groups), nil
	}
	e.listed, e.counted = true, false
	return e.below, nil
}

// lookAgain lists the groups below one if they were only counted, and one of them is gone: another
// may have come in its place.
func (w *Watcher) lookAgain(e *entry, now time.Time, moved bool) error {
	if e == nil || e.listed || !e.counted {
		return nil
	}
	children, err := w.children(e.at, e)
	if err != nil {
		w.failed(err)
		return nil
	}
	for _, c := range children {
		if known := w.entries[c.path]; known != nil && known.round == w.round {
			continue
		}
		if err := w.look(c, e, now, moved); err != nil {
			return err
		}
	}
	return nil
}
