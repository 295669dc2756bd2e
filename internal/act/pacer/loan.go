package pacer

import (
	"container/heap"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// A loan lets what a group has paid the pacer for go past the kernel's rule, where that would
// have the group wait for it once more. The rule is higher for a moment, in which the kernel
// lets go all that waits. Nobody of the group goes on meanwhile, or nothing would bind who
// writes directly; what waited and was not paid for is owed.
type loan struct {
	to     *paced
	device blkdev.Number
	back   cgroupfs.Write // is what ends it
	lock   *state.Lock    // nobody else changes the group's limits
	until  time.Duration
}

const (
	// loanFor is how long a loan lasts: the kernel looks at what waits on the next tick of its
	// clock, which may be 10 ms away.
	loanFor = 25 * time.Millisecond
	// loanPart is which part of the time that it saves a loan lasts longer, for a busy machine,
	// and loanMore the most of that.
	loanPart = 100
	loanMore = 100 * time.Millisecond
)

// lend begins a loan to a group that wants one. While somebody else changes the group's limits
// it is tried again; where there is no rule to lend on nobody waits.
func (s *server) lend(p *paced, now time.Duration) {
	m, is := p.meter.(*written)
	if !is || !m.ledger.wants() {
		return
	}
	l := loan{to: p, device: m.fullest(), until: now + loanFor + min(loanMore, m.ledger.saves(p.bucket.rate)/loanPart)}
	var err error
	if l.lock, err = s.dir.Try(cgroupfs.LimitsLock(cgroupfs.V1, p.roster.limited.Path())); err == nil && l.lock == nil {
		return
	}
	if err == nil {
		err = p.roster.limited.Lend(l.device, func(back cgroupfs.Write) error {
			l.back = back
			return s.toGuards(func(g *guard) error { return g.hold(back.File, back.Line) })
		})
	}
	if m.ledger.begin(m.gates[l.device].waits); err != nil {
		l.until = now // is over, if it has begun
		if s.repay(l, now) {
			return
		}
	}
	p.waits = l.until
	_ = p.halt(now) // a group that is gone is found to be at its next look
	s.loans = append(s.loans, l)
	heap.Init(&s.loop.groups)
}

// repay ends a loan. done is false where the rule could not be had back, and is there still.
func (s *server) repay(l loan, now time.Duration) (done bool) {
	if err := l.to.roster.limited.Repay(l.device); err != nil && !cgroupfs.IsGone(err) {
		return false
	}
	m := l.to.meter.(*written)
	if l.back.File != "" {
		_ = s.toGuards(func(g *guard) error { return g.release(l.back.File) }) // who does not listen is no guard
		m.passed(l.device, now)
	}
	l.lock.Unlock()
	m.ledger.end(now)
	l.to.waits = 0
	return true
}

// repayDue ends the loans whose time is over.
func (s *server) repayDue(now time.Duration) {
	s.loans = slices.DeleteFunc(s.loans, func(l loan) bool { return now >= l.until && s.repay(l, now) })
}

// repayOf ends the loans to a group; nil: all. What cannot be repaid is left to the guards.
func (s *server) repayOf(p *paced) {
	s.loans = slices.DeleteFunc(s.loans, func(l loan) bool {
		if p != nil && l.to != p {
			return false
		}
		if !s.repay(l, clockNow()) {
			l.lock.Unlock()
		}
		return true
	})
}

// repayBy is when the first loan ends, or a moment, whichever comes first.
func (s *server) repayBy(at time.Duration) time.Duration {
	for _, l := range s.loans {
		at = min(at, l.until)
	}
	return at
}

// fullest is the device at whose rule most waits.
func (m *written) fullest() (device blkdev.Number) {
	most := -1.0
	for d, g := range m.gates {
		if g.waits > most {
			device, most = d, g.waits
		}
	}
	return device
}

// passed notes at the end of a loan that nothing waits at a device's rule any more.
func (m *written) passed(device blkdev.Number, now time.Duration) {
	more, _ := m.charge(now) // what cannot be read is charged at the next look
	m.uncounted += more
	if g := m.gates[device]; g != nil {
		g.waits, g.lent = 0, g.lent+g.waits
	}
}

// lent is what has gone past each device's rule, in a loan that is under way as well.
func (s *server) lent(p *paced, m *written, now time.Duration) map[blkdev.Number]uint64 {
	all := make(map[blkdev.Number]uint64)
	for d, g := range m.gates {
		all[d] = uint64(g.lent)
	}
	for _, l := range s.loans {
		if g := m.gates[l.device]; l.to == p && g != nil {
			more, _ := m.charge(now) // what cannot be read is charged at the next look
			m.uncounted += more
			all[l.device] = uint64(g.lent + g.waits)
		}
	}
	return all
}
