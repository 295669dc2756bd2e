package pacer

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Seen is what the pacer knows of a group that it holds. The rest is of one that
// is counted by CountEscaped. Lent is of the others.
type Seen struct {
	Stops   uint64                   `json:"stops"`             // how often it was stopped
	Stopped bool                     `json:"stopped,omitempty"` // it is stopped now
	Owes    time.Duration            `json:"owes,omitempty"`    // how long it takes to pay for what it was seen to write, in ns
	Told    bool                     `json:"told"`              // BPF sees what escapes; else the rest is empty
	Began   time.Duration            `json:"began,omitempty"`   // when this pacer began to count what escapes, since the boot: no earlier count is in it
	Escaped map[blkdev.Number]uint64 `json:"escaped"`
	Files   []escape.File            `json:"files"`
	Lent    map[blkdev.Number]uint64 `json:"lent"` // bytes that went past the kernel's rule, as they were paid for before
	// Spare is what write_bytes has counted and nobody has written: rests of folios, in bytes; of
	// files of other groups, where these are what is counted. Escaped is without it.
	Spare uint64 `json:"spare"`
	// Resumed says that another pacer, which was killed, has held the group before: what that one
	// knew of Spare is lost.
	Resumed bool `json:"resumed,omitempty"`
}

// seen answers a request for Seen.
func (s *server) seen(limited Place) (*Seen, error) {
	p := s.of(limited)
	if p == nil {
		return nil, fmt.Errorf("the pacer does not pace cgroup %s", limited.Path)
	}
	seen := &Seen{Stops: p.stops, Stopped: p.stopped, Owes: p.owes(clockNow()), Resumed: s.jobs[p].resumed}
	if m, is := p.meter.(*written); is {
		seen.Lent = s.lent(p, m, clockNow())
	}
	if m, is := p.meter.(doubtful); is && m.parts().count != nil && p.look(clockNow()) == nil { // what was just written counts
		seen.Spare = uint64(max(0, m.parts().all))
	}
	m, is := p.meter.(*escaped)
	if is {
		seen.Began = m.began
	}
	if !is || !s.escapes.usable() {
		return seen, nil
	}
	var err error
	if seen.Escaped, err = s.escapes.have.Escaped(m.meter.ID()); err == nil {
		without(seen.Escaped, seen.Spare, m.meter.Disks())
		seen.Files, err = s.escapes.have.Files(m.meter.ID(), p.roster.limited.Hierarchy())
	}
	seen.Told = err == nil
	return seen, err
}

// owes is how long it takes to pay for what the processes were seen to write.
func (p *paced) owes(now time.Duration) time.Duration {
	b := p.bucket
	b.fill(now)
	return max(0, b.until(0))
}

// without takes what is spare off what BPF has seen escape, by disk.
func without(escaped map[blkdev.Number]uint64, spare uint64, disks []blkdev.Number) {
	for _, n := range disks { // spare is of all disks: mostly it is one
		if less := min(spare, escaped[n]); less > 0 {
			escaped[n], spare = escaped[n]-less, spare-less
		}
	}
}

// Seen asks what the pacer knows of a limited group.
func (c Client) Seen(limited Place) (Seen, error) {
	a, err := c.ask(ask{Seen: &limited})
	if err != nil || a.Seen == nil {
		return Seen{}, err
	}
	return *a.Seen, nil
}

// A Watcher reports what the pacer sees escape one group.
type Watcher struct {
	client  Client
	limited Place
	began   time.Duration // when the pacer began to count, as Add found it
}

// Watcher returns a Watcher for a limited group.
func (c Client) Watcher(limited Place) *Watcher { return &Watcher{client: c, limited: limited} }

// Add returns an error if the pacer sees nothing. The pacer counts the group already.
func (w *Watcher) Add(cgroupfs.Group, uint64) error {
	seen, err := w.client.Seen(w.limited)
	if err == nil && !seen.Told {
		err = errBlind
	}
	w.began = seen.Began
	return err
}

// Remove does nothing: the pacer goes on counting.
func (w *Watcher) Remove(uint64) error { return nil }

// Escaped returns the bytes that have escaped the group, by disk. It returns an error if that is
// not all since Add.
func (w *Watcher) Escaped(uint64) (map[blkdev.Number]uint64, error) {
	seen, err := w.seen()
	return seen.Escaped, err
}

// Files returns the files through which most bytes escaped, the largest amount first.
func (w *Watcher) Files(uint64, *cgroupfs.Hierarchy) ([]escape.File, error) {
	seen, err := w.seen()
	return seen.Files, err
}

var (
	errBlind = errors.New("the pacer cannot see writes to files of other groups")
	errAnew  = errors.New("the pacer has begun to count anew, and what escaped before is not known")
)

func (w *Watcher) seen() (Seen, error) {
	seen, err := w.client.Seen(w.limited)
	switch {
	case err != nil:
		return Seen{}, err
	case !seen.Told:
		return Seen{}, errBlind
	case w.Anew(seen):
		return Seen{}, errAnew
	}
	return seen, nil
}

// Anew reports whether the pacer has begun to count anew since Add: it was killed, or somebody
// has set the group's limits. What it knew before is lost, also of Spare.
func (w *Watcher) Anew(seen Seen) bool { return w.began != 0 && seen.Began != w.began }
