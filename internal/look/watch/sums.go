package watch

import (
	"runtime"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// On v1 the counters of a group are its own. For what is charged to a group and to all groups below it
// the kernel has a file too, which takes it a tenth of the time that the files of those groups take. A
// Watcher reads the groups that moved lately, and the sum after them. Counters only grow: if all that
// is known adds up to the sum, no other group has moved, and none is read.

// sumMost bounds for how many groups the kernel is asked for a sum, because interrupts are off
// meanwhile; on a machine with many processors sumMost/sumShare processors' worth.
const sumMost, sumShare = 256, 4

// hotRounds is for how many readings a group that has moved is read each time.
const hotRounds = 10

// sumOf is the sum of a group and of those below it; nil: the kernel has none, or it would take it too
// long.
func (w *Watcher) sumOf(e *entry) *cgroupfs.OpenStats {
	if e.size > sumMost*sumShare/max(sumShare, runtime.NumCPU()) {
		return nil
	}
	if e.sum == nil && !e.sumless && w.open < w.o.Keep {
		sum, err := e.at.OpenSum()
		if e.sumless = err != nil; err == nil {
			e.sum = sum
			w.open++
		}
	}
	return e.sum
}

// lookBelow looks at the groups below one of v1, if the sum does not tell that they are at rest.
func (w *Watcher) lookBelow(e *entry, children []named, now time.Time) error {
	defer w.settle(e)
	if !e.sure || len(e.kids) == 0 || w.sumOf(e) == nil {
		return w.lookAll(e, children, now)
	}
	kids := e.kids // e has none from when one of them is found gone
	for _, k := range kids {
		if k.hot >= w.round {
			if err := w.look(k.named, e, now, true); err != nil {
				return err
			}
		}
	}
	if w.addsUp(e) {
		for _, k := range kids {
			if k.hot < w.round {
				w.restBelow(k, now)
			}
		}
		return nil
	}
	for _, k := range kids {
		if k.round == w.round {
			continue
		}
		if err := w.look(k.named, e, now, true); err != nil {
			return err
		}
	}
	return w.lookAgain(e, now, true)
}

func (w *Watcher) lookAll(e *entry, children []named, now time.Time) error {
	for _, c := range children {
		if err := w.look(c, e, now, true); err != nil {
			return err
		}
	}
	return w.lookAgain(e, now, true)
}

// addsUp reports whether what is known of a group and of those below it is all that there is.
func (w *Watcher) addsUp(e *entry) bool {
	all, known := e.own()
	if !e.sure {
		return false // a look at the hot ones found something
	}
	for _, k := range e.kids {
		if !k.sure {
			return false
		}
		all += k.total
	}
	sum, is, err := e.sum.Sum()
	if err != nil { // to read the group itself says why
		w.failed(w.shutSum(e))
		return false
	}
	return known && is && sum == all
}

// own is what is charged to the group itself.
func (e *entry) own() (total uint64, known bool) {
	if e.files == nil {
		return 0, false
	}
	return e.files.TotalV1()
}

// settle notes what the groups below one add up to.
func (w *Watcher) settle(e *entry) {
	if e.kids == nil && e.listed {
		for _, c := range e.below {
			if k := w.entries[c.path]; k != nil {
				k.above = e
				e.kids = append(e.kids, k)
			}
		}
	}
	var known bool
	e.total, known = e.own()
	if e.size = 1; e.moved {
		e.hot = w.round + hotRounds
	}
	e.sure = known && e.listed && e.watch != noWatch && len(e.kids) == len(e.below)
	for _, k := range e.kids {
		if k.round != w.round {
			e.listed = false
		}
		e.total += k.total
		e.size += k.size
		e.hot = max(e.hot, k.hot)
		e.sure = e.sure && k.sure && e.listed
	}
	if !e.listed || len(e.kids) != len(e.below) {
		e.kids = nil // they are looked up again
	}
}

// readOps reads the operations of a group whose bytes are known to be those of before.
func (w *Watcher) readOps(e *entry) error {
	if e.files == nil || !e.told() || e.stirred {
		return w.read(e)
	}
	stats, err := e.files.ReadOps()
	if err != nil {
		return w.read(e) // which says why, or opens the files anew
	}
	now := w.o.Now()
	e.whole = now
	w.note(e, stats, now)
	return nil
}

// restBelow notes that a group and those below it are at rest. Now and then their operations are read all the same: those
// without bytes are in no sum.
func (w *Watcher) restBelow(e *entry, now time.Time) {
	if !e.stirred && now.Sub(e.read) < w.idle {
		e.rest(now)
	} else if err := w.readOps(e); err != nil {
		w.failed(err)
		if e.above.shaken(); cgroupfs.IsGone(err) {
			return
		}
	}
	e.round = w.round
	for _, k := range e.kids {
		w.restBelow(k, now)
	}
}
