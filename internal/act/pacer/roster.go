package pacer

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// A roster lists the processes that a group's limits apply to: on v1 its own processes, on v2
// also those of child groups.
type roster struct {
	limited  cgroupfs.Group
	id       uint64 // of the limited group; 0: not known yet
	name     string // of its cells
	places   []place
	members  []int
	births   *process.Births // nil: nobody can tell
	born     time.Duration   // when they told of some last
	listed   time.Duration   // when the places were found last
	arrivals *arrivals
	arrived  bool  // somebody was put into a place since
	before   []int // the members before they were listed last
}

// A place is a group of the roster. A threaded one takes single threads.
type place struct {
	group   cgroupfs.Group
	threads bool
	tasks   []int
}

// gatherEvery is how often the places are listed if nothing reports new ones.
const gatherEvery = 100 * time.Millisecond

// bornMost is how long a process takes, after it gets its number, to be in its group, or to
// move itself or another process there.
const bornMost = 100 * time.Millisecond

// look updates the list. afresh reports that the list was read again, whole that the places
// were too.
func (r *roster) look(now time.Duration) (afresh, whole bool, err error) {
	whole = r.places == nil || now-r.listed > gatherEvery || r.arrived
	if whole {
		r.arrived, r.listed = false, now
		if err := r.list(); err != nil {
			return false, false, err
		}
	}
	if r.births == nil || r.births.Some() {
		r.born = now
	}
	if afresh = whole || now-r.born < bornMost; afresh {
		err = r.enumerate()
	}
	return afresh, whole, err
}

// same returns an error if the limited group is gone. Another group of the same name, with
// limits of its own or none, is not the same group.
func (r *roster) same() error {
	id, err := r.limited.ID()
	if err != nil {
		return err
	}
	if r.id == 0 {
		r.id = id
	}
	if r.id != id {
		return &fs.PathError{Op: "look at", Path: r.limited.Dir(), Err: unix.ENODEV}
	}
	return nil
}

// list finds the places.
func (r *roster) list() error {
	if err := r.same(); err != nil { // Walk passes over a group that is gone
		return err
	}
	r.places = r.places[:0]
	if r.limited.Hierarchy().Version == cgroupfs.V1 {
		r.places = append(r.places, place{group: r.limited})
		r.arrivals.watch(r, r.limited)
		return nil
	}
	return r.limited.Walk(func(g cgroupfs.Group) error {
		threads, err := g.Threaded()
		if err != nil {
			return err
		}
		r.places = append(r.places, place{group: g, threads: threads})
		if !g.In(r.name) {
			r.arrivals.watch(r, g)
		}
		return nil
	})
}

// enumerate lists the processes in the places.
func (r *roster) enumerate() error {
	r.before, r.members = r.members, r.before[:0]
	for i := range r.places {
		p := &r.places[i]
		pids, err := p.group.Processes()
		// A group that vanishes has none; those of a threaded group belong to a group above.
		if err != nil && (p.group == r.limited || !cgroupfs.IsGone(err) && !errors.Is(err, unix.EOPNOTSUPP)) {
			return err
		}
		r.members = append(r.members, pids...)
		if p.tasks = pids; p.threads {
			if p.tasks, err = p.group.Tasks(true); err != nil && !cgroupfs.IsGone(err) {
				return err
			}
		}
	}
	return nil
}

func (r *roster) close() {
	r.arrivals.forget(r)
	if r.births != nil {
		_ = r.births.Close()
	}
}
