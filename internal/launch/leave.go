package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// Left is what remains of a room that is closed.
type Left int

// A group is left with processes of the command, or without them, because what it has
// written is in memory still, or queued. Sweep has to be called when that has ended.
const (
	LeftNothing Left = iota
	LeftProcesses
	LeftDirty
	LeftQueued
)

// Close removes the group, unless something of it is left.
func (r *Room) Close() (left Left, err error) {
	if r.keeper != nil {
		return r.closeScope()
	}
	err = r.remove()
	switch {
	case len(r.made) == 0:
		return LeftNothing, err
	case occupied(r.made[len(r.made)-1]):
		return LeftProcesses, err
	case r.queued > 0:
		return LeftQueued, err
	}
	return LeftDirty, err
}

// closeScope leaves the scope, which goes with its last process. Where it holds writeback,
// the keeper stays until that is done: also after processes that live on.
func (r *Room) closeScope() (left Left, err error) {
	if _, others := inside(r.IO, r.keeper.cmd.Process.Pid); others {
		left = LeftProcesses
	} else if r.linger && lingers(r.IO, lingerMin) {
		left = LeftDirty
	}
	if left != LeftNothing && r.linger && bindsWriteback(r.IO) {
		err, r.keeper = r.keeper.leave(), nil
		return left, err
	}
	if r.queued > 0 {
		if left == LeftNothing {
			left = LeftQueued
		}
		err, r.keeper = r.keeper.wait(emptyAfter(r.queued)), nil
		return left, err
	}
	return left, r.remove()
}

// Sweep removes the groups that dead weirs left, if nothing runs in them any more and
// nothing of theirs is in memory.
func Sweep(dir state.Dir, hierarchies *cgroupfs.FS) error { return sweep(dir, hierarchies, "") }

// sweep is Sweep that does not wait for what one group has in memory.
func sweep(dir state.Dir, hierarchies *cgroupfs.FS, wanted string) error {
	return dir.Sweep(recordKind, func(data []byte) error {
		var places []place
		if err := json.Unmarshal(data, &places); err != nil {
			return fmt.Errorf("read record of a group: %w", err)
		}
		for _, p := range places {
			if err := p.remove(hierarchies, p.Path == wanted); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p place) remove(hierarchies *cgroupfs.FS, atOnce bool) error {
	h := hierarchies.Unified()
	if p.Version == cgroupfs.V1 {
		h = hierarchies.With(p.Controller)
	}
	if h == nil {
		return nil
	}
	g, err := h.Group(p.Path)
	if err != nil {
		return err
	}
	if occupied(g) || !atOnce && (p.Linger && lingers(g, lingerEnd) || p.drains(g) > 0) {
		return state.ErrKeep
	}
	err = g.RemoveAll()
	switch {
	case errors.Is(err, unix.EBUSY):
		return state.ErrKeep
	case err != nil && !cgroupfs.IsGone(err):
		return fmt.Errorf("remove cgroup of a dead weir: %w", err)
	}
	return nil
}

// removeWait bounds how long a group stays busy after its last process has gone:
// the kernel takes exiting tasks off it a moment after their parent has been told.
const removeWait = 2 * time.Second

// remove removes what was made. A group that still has processes is left, and its
// record with it: Sweep removes it when they are gone.
func (r *Room) remove() error {
	if r.keeper != nil {
		r.keeper.dismiss()
	}
	deadline := time.Now().Add(removeWait)
	for len(r.made) > 0 {
		g := r.made[len(r.made)-1]
		if r.queued > 0 {
			return r.stay()
		}
		if occupied(g) || r.linger && lingers(g, lingerMin) {
			return r.leave()
		}
		err := g.RemoveAll()
		switch {
		case err == nil || cgroupfs.IsGone(err):
			r.made = r.made[:len(r.made)-1]
		case !errors.Is(err, unix.EBUSY) || time.Now().After(deadline):
			return errors.Join(fmt.Errorf("remove cgroup: %w", err), r.leave())
		default:
			time.Sleep(time.Millisecond)
		}
	}
	if r.record == nil {
		return nil
	}
	return r.record.Done()
}

// occupied reports whether a process is in the group, or in a group that the command
// made below it. Then none of those is touched, the empty ones neither: they are the
// command's. (A threaded group does not list processes; it has some.)
func occupied(g cgroupfs.Group) bool {
	found := false
	err := g.Walk(func(below cgroupfs.Group) error {
		pids, err := below.Processes()
		found = found || len(pids) > 0 || errors.Is(err, unix.EOPNOTSUPP)
		if found {
			return nil
		}
		return err
	})
	return err == nil && found
}

func (r *Room) leave() error {
	if r.record == nil {
		return nil
	}
	return r.record.Leave()
}

// stay leaves the groups until what is queued in one has gone to the disk.
func (r *Room) stay() error {
	if r.record == nil {
		return nil
	}
	places := placesOf(r.made, r.linger)
	for i := range places {
		places[i].Until = now() + moment(emptyAfter(r.queued))
	}
	record, err := r.record.Replace(places)
	if err != nil {
		return errors.Join(err, r.leave())
	}
	r.record = record
	return r.leave()
}
