package launch

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// Left is what remains of a closed room.
type Left int

// A group stays with processes of the command, or without processes because its data is still
// in memory, or queued. When that has ended, somebody has to call Sweep.
const (
	LeftNothing Left = iota
	LeftProcesses
	LeftDirty
	LeftQueued
)

// Close removes the group, unless something remains.
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

// closeScope leaves the scope, which ends with its last process. If the scope's data is still
// in memory, the keeper stays until it is written, also after other processes have ended.
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

// Sweep removes the groups that dead weirs left, if they have no processes and no data in
// memory any more.
func Sweep(dir state.Dir, hierarchies *cgroupfs.FS) error { return sweep(dir, hierarchies, "") }

// sweep is Sweep without waiting for one group's data in memory.
func sweep(dir state.Dir, hierarchies *cgroupfs.FS, wanted string) error {
	return state.Sweep(dir, recordKind, func(places []place) error {
		for _, p := range places {
			if err := p.remove(hierarchies, string(p.Path) == wanted); err != nil {
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
	g, err := h.Group(string(p.Path))
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

// removeWait bounds how long a group stays busy after its last process has ended: the kernel
// removes exiting tasks from it a moment after their parent has been told.
const removeWait = 2 * time.Second

// remove removes what was made. A group that still has processes stays, and so does its record:
// Sweep removes it later.
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

// occupied reports whether a process is in the group, or in a group that the command made below
// it. If so, none of these groups is touched, not even the empty ones: they belong to the
// command. (A threaded group does not list processes, but has some.)
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

// stay keeps the groups until the queued writes of one have reached the disk.
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
