package pacer

import (
	"container/heap"
	"errors"
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
	until  time.Duration  // when it ends, if all of the group have stopped by then
	most   time.Duration  // when it ends, whoever has not
	again  time.Duration  // when to try next, where the rule could not be had back; 0: that was not tried
}

const (
	// loanFor is how long a loan lasts at least: the kernel looks at what waits on the next tick
	// of its clock, which may be 10 ms away.
	loanFor = 25 * time.Millisecond
	// A process that syncs stops once the kernel has let go what it waits for. While one of the
	// group has not stopped, the loan goes on: on a busy machine the kernel may be late. That is
	// for loanPart of the time that the loan saves at most, and no longer than loanMore.
	loanPart = 5
	loanMore = time.Second
)

// lend begins a loan to a group that wants one. While somebody else changes the group's limits,
// the next step tries again. After an error a later one does: the group waits for what it has
// paid for until then, and what still waits is lent.
func (s *server) lend(p *paced, now time.Duration) {
	m, is := p.meter.(*written)
	if !is || !m.ledger.wants() || now < m.lendAgain {
		return
	}
	l := loan{to: p, device: m.fullest()}
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
	switch {
	case errors.Is(err, cgroupfs.ErrNoLoan): // nobody waits at a rule that is not there
		l.lock.Unlock()
		m.forgo(now)
		return
	case err != nil:
		s.unguard(l)
		l.lock.Unlock()
		m.lendAgain = now + retryAfter
		return
	}
	l.until = now + loanFor
	l.most = l.until + min(loanMore, m.ledger.saves(p.bucket.rate)/loanPart)
	m.ledger.begin(m.gates[l.device].waits)
	p.waits = l.most
	_ = p.halt(now) // a group that is gone is found to be at its next look
	s.loans = append(s.loans, l)
	heap.Init(&s.loop.groups)
}

// unguard tells the guards that a loan is over, or has not begun.
func (s *server) unguard(l loan) {
	if l.back.File != "" {
		_ = s.toGuards(func(g *guard) error { return g.release(l.back.File) }) // one that does not listen is no guard
	}
}

// repay ends a loan. done is false where the rule could not be had back, and is there still.
func (s *server) repay(l loan, now time.Duration) (done bool) {
	m := l.to.meter.(*written)
	m.passed(l.device, now) // what is charged from here on may wait at the rule
	if err := l.to.roster.limited.Repay(l.device); err != nil && !cgroupfs.IsGone(err) {
		return false
	}
	s.unguard(l)
	l.lock.Unlock()
	m.owed += m.ledger.end(now)
	if l.to.waits = 0; l.to.stopped {
		l.to.plan(now)
		heap.Init(&s.loop.groups)
	}
	return true
}

// repayDue ends the loans whose time is over. Where one of the group has not stopped yet, a loan
// gets more time.
func (s *server) repayDue(now time.Duration) {
	for i := range s.loans {
		if l := &s.loans[i]; now >= l.until && now < l.most && !l.to.cells.still() {
			l.until = min(l.most, now+stillLook)
		}
	}
	s.loans = slices.DeleteFunc(s.loans, func(l loan) bool { return now >= l.until && s.repay(l, now) })
	for i := range s.loans {
		if l := &s.loans[i]; now >= l.until { // it could not be repaid
			l.again = now + retryAfter
		}
	}
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
		at = min(at, max(l.until, l.again))
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

// passed notes, at the end of a loan, that nothing waits at a device's rule any more.
func (m *written) passed(device blkdev.Number, now time.Duration) {
	more, _ := m.charge(now) // what cannot be read is charged at the next look
	owes, _ := m.ledger.enter(0, more+m.uncounted, m.least, now)
	m.owed, m.uncounted = m.owed+owes, 0
	if g := m.gates[device]; g != nil {
		g.waits, g.lent = 0, g.lent+g.waits
	}
}

// forgo ends a wish for a loan: there is no rule, so that all is to be paid for here.
func (m *written) forgo(now time.Duration) {
	m.ledger.begin(m.gates[m.fullest()].waits)
	m.owed += m.ledger.end(now)
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
