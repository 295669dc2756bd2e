package hold

import (
	"context"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// A Locked holder is the only weir that may change the limits of one group, until it is
// unlocked or its process dies. The lock does not cover the groups above and below, which have
// limits of their own. (Enabling a controller in the groups above needs no lock: it is one
// word, which weir never takes back.)
type Locked struct {
	Holder
	Group cgroupfs.Group
	lock  *state.Lock
}

// Lock waits for the group's lock, for at most state.LockMost if the same weir has it all the time. The lock does not stop other
// programs, or the weirs of another user, who has another directory of records. For their sake
// every change is read back.
func (h Holder) Lock(ctx context.Context, g cgroupfs.Group) (Locked, error) {
	if err := g.Hierarchy().Writable(); err != nil {
		return Locked{}, err
	}
	version := g.Hierarchy().Version
	lock, err := h.State.Wait(ctx, cgroupfs.LimitsLock(version, g.Path()), "the limits of cgroup "+g.Path(), state.LockMost)
	if err != nil {
		return Locked{}, err
	}
	l := Locked{h, g, lock}
	l.settle()
	return l, nil
}

// TryLock is Lock of a group that was just born, for its first rules: it waits for nobody, and takes
// nothing back. free says that nobody else has the lock.
func (h Holder) TryLock(g cgroupfs.Group) (l Locked, free bool, err error) {
	if err := g.Hierarchy().Writable(); err != nil {
		return Locked{}, false, err
	}
	lock, err := h.State.Try(cgroupfs.LimitsLock(g.Hierarchy().Version, g.Path()))
	return Locked{h, g, lock}, lock != nil, err
}

// TryLockKnown is TryLock of a group that may have had rules before: what dead weirs left half done for it is
// taken back, as Lock does it.
func (h Holder) TryLockKnown(g cgroupfs.Group) (l Locked, free bool, err error) {
	if l, free, err = h.TryLock(g); free && err == nil {
		l.settle()
	}
	return l, free, err
}

// Unlock lets others change the group's limits.
func (l Locked) Unlock() { l.lock.Unlock() }

const (
	// settleTries and settlePause bound how long weir waits for a record that another weir has
	// opened only to find that the group is locked.
	settleTries = 50
	settlePause = time.Millisecond
)

// settle takes back what dead weirs left half done for the group. It comes before the next
// change, which may ask for the same value and would later be mistaken for the half-done one.
// What cannot be taken back stays on record; weir has reported it when it looked at all
// records.
func (l Locked) settle() {
	own := func(j journal) bool {
		return j.Version == l.Group.Hierarchy().Version && string(j.Group) == l.Group.Path()
	}
	for range settleTries {
		tried := false
		if all, _ := state.All[journal](l.State, journalKind); !slices.ContainsFunc(all, own) {
			return
		}
		_ = state.Sweep(l.State, journalKind, func(j journal) error {
			if !own(j) {
				return state.ErrKeep
			}
			tried = true
			return j.undo(l.Group, l.dial, l.Pacer)
		})
		if tried {
			return
		}
		time.Sleep(settlePause)
	}
}
