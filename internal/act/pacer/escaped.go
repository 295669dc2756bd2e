package pacer

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// CountEscaped makes the pacer count only what escapes the group's limit on cgroup v2: writes
// to files that the kernel charges to another group. The limit applies to these and to the
// group's own writes together. The pacer moves and pauses no process before something has
// escaped.
const CountEscaped = "escaped"

// escaped is the meter for CountEscaped.
type escaped struct {
	limited   cgroupfs.Group
	began     time.Duration
	meter     *escape.Meter
	folios    folios
	threshold float64
	owed      *escape.Owed
	at        time.Duration
	taken     float64                  // of the bucket, by what the kernel was seen to charge last
	told      map[blkdev.Number]uint64 // of what has escaped, by disk: see sums
}

// newEscaped starts to count. The watcher may be nil.
func newEscaped(j Job, limited cgroupfs.Group, w escape.Watcher, parts func() (Parts, error), now time.Duration) (*escaped, error) {
	threshold := escape.Threshold(j.WBPS, w != nil)
	m, err := escape.NewMeter(limited, j.Devices, w, threshold/2)
	if err != nil {
		return nil, err
	}
	return &escaped{limited: limited, began: now, meter: m, folios: folios{load: parts}, threshold: float64(threshold), owed: escape.NewOwed(j.WBPS, threshold, now), at: now}, nil
}

func (m *escaped) look(now time.Duration, members []int) (unseen float64, err error) {
	past, charged, err := m.meter.Look()
	if err != nil {
		return 0, err
	}
	m.at = now
	// The watcher counts folios whole, as write_bytes does, and all of them are in doubt.
	past = m.folios.written(process.IO{WriteBytes: uint64(past)}, now)
	unseen, m.taken = m.owed.Take(past, charged, now, func() bool { return m.meter.Suspect(members, now) })
	return unseen, nil
}

func (m *escaped) joined() {} // the kernel told of each write of theirs in the group, and of no other

func (m *escaped) charged() float64 { return m.taken }

func (m *escaped) on(j Job) { m.meter.On(j.Devices) }

func (m *escaped) close() {
	m.folios.close()
	m.meter.Close()
}

// tell begins to count parts of folios, and returns what was owed for those that are in doubt.
func (m *escaped) tell(now time.Duration) (owed float64, err error) {
	doubt, err := m.folios.start(now, func(w Parts) (Counter, error) { return w.AddEscapes(m.limited, m.meter.Disks) })
	return m.owed.Back(doubt), err
}

// rest is how long the group needs no look; 0: it is paced as other groups are.
func (m *escaped) rest(now time.Duration) time.Duration {
	if m.owed.Active(now) {
		return 0
	}
	if m.folios.spare > m.threshold {
		return spareRest
	}
	return m.meter.Rest()
}

// spareRest is how long a group needs no look that has written parts of folios: the watcher does
// not report it when it writes the rest.
const spareRest = 30 * time.Millisecond

// A resting meter can leave a group alone for a while.
type resting interface {
	rest(now time.Duration) time.Duration
}

// rests reports how long the group can be left alone; 0: not at all.
func (p *paced) rests(now time.Duration) time.Duration {
	if m, can := p.meter.(resting); can && !p.stopped {
		return m.rest(now)
	}
	return 0
}

// takeOver resumes processes that another pacer paused. No process is moved into cells before
// something escapes, and these cells will be removed.
func (c *cells) takeOver(j Job) error {
	all, err := j.Cells(c.fs)
	for _, own := range all {
		if _, err := c.make(own.Parent()); err != nil && !cgroupfs.IsGone(err) {
			return err
		}
	}
	return errors.Join(err, c.set(false))
}

// alarmPoll is the descriptor to wait for before alarm; none without a watcher.
func (s *server) alarmPoll() unix.PollFd {
	if !s.escapes.usable() {
		return unix.PollFd{Fd: -1}
	}
	return unix.PollFd{Fd: int32(s.escapes.have.FD()), Events: unix.POLLIN}
}

// alarm makes the groups due of which something has escaped.
func (s *server) alarm() {
	now := clockNow()
	for _, id := range s.escapes.have.Drain() {
		for p := range s.jobs {
			if m, is := p.meter.(*escaped); is && m.meter.ID() == id && !p.stopped {
				p.plan(min(p.next, now))
			}
		}
	}
}
