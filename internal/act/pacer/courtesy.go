package pacer

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/process"
)

// A courtesy resumes a paused process for a moment if it has a pending signal: on v1 a frozen
// process takes no signal, not even SIGKILL. Where there are others it is released alone; where
// it cannot be, all go on with it. What is written meanwhile is added to the debt. When a process
// has ended, its parent is resumed to take note of that.
type courtesy struct {
	due   time.Duration    // when to look for signals next
	whom  int              // who is let go for one; 0: nobody
	what  process.Signals  // which signals those are
	until time.Duration    // for how long at most
	begun time.Duration    // since when
	ended int              // whose end it is to take note of, as the parent; 0: of nobody's
	over  bool             // that is done, or all are let go and the process has ended
	most  float64          // to which level of the bucket at least
	ends  time.Duration    // until when others may end because of one that was ended: see of
	owes  int              // who was let go last, until what that cost is known
	cost  float64          // of that by now, in bytes
	known map[int]standing // of some members
}

// A standing is what is kept of a process that was resumed for a signal.
type standing struct {
	last   time.Duration // when it was resumed last
	wait   time.Duration // until when it is not resumed again, for what that has cost
	going  time.Duration // until when it may be about to end
	unkind bool          // it did not take a signal that ends it, in the time that it had
}

const (
	// signalEvery is how often paused processes are checked for signals, if there are few of
	// them, and signalLate how late a signal may be seen among many.
	signalEvery = 20 * time.Millisecond
	signalLate  = 100 * time.Millisecond
	// shortMost is how long they may be paused without a check for signals.
	shortMost = 90 * time.Millisecond
	// signalShare is the share of a processor that these checks take, of all groups together, and
	// signalShareMost the largest one that they take so as not to be later than signalLate.
	signalShare     = 0.01
	signalShareMost = 0.1
	// courtesyMost is the longest time for which they are resumed for a signal. endMost is the
	// same for a signal that ends a process (on a busy machine it gets a processor late, and
	// writes nothing more), and until one that asks for an end is taken. courtesyLook is how often
	// the pacer checks whether the signal has been taken.
	courtesyMost = 5 * time.Millisecond
	endMost      = 100 * time.Millisecond
	courtesyLook = 200 * time.Microsecond
	// stillMost is how long the pacer waits at most until all have stopped, before it looks for
	// signals: a write of megabytes goes on until it ends. stillLook is how often it checks.
	stillMost = 100 * time.Millisecond
	stillLook = 4 * time.Millisecond
	// endEvery is how often the pacer tries again for a signal that ends a process. Each try
	// costs at most courtesyCost.
	endEvery = 500 * time.Millisecond
	// courtesyCost is how much they may write meanwhile, as time at the limit.
	courtesyCost = 20 * time.Millisecond
	// takeLeast is how long a process has to take such a signal, or one that asks it to end, and
	// to do what that takes, whatever others write meanwhile: it may have to wait for a processor.
	takeLeast = 2 * time.Millisecond
	// courtesyPause bounds how often a process gets this courtesy: after a signal it gets none
	// for this many times the debt that the signal caused. So a process that gets signals all
	// the time, for example from a profiler, stays within the limit. A signal that ends the
	// process does not wait.
	courtesyPause = 20
	// goingFor is how long a process that handles a signal to end is resumed now and then, so
	// that it can finish.
	goingFor = 2 * time.Second
)

// attend handles signals of paused processes until the next step is due.
func (p *paced) attend(now time.Duration, may pace) error {
	c := &p.courtesy
	switch {
	case c.whom != 0:
		return p.serve(now)
	case p.stopped && p.looked && now >= c.due && now-max(p.halted, c.begun) < stillMost && !p.cells.still():
		c.due = now + stillLook // what they write until they have stopped is nobody's cost
	case p.stopped && p.looked && now >= c.due:
		c.settle(p.bucket.rate, now)
		before := spent()                    // to bring somebody may take long, and no processor time
		if err := p.bring(now); err != nil { // the group may have gone, or emptied
			return err
		}
		whom, what := p.signalled(now)
		c.due = now + signalsAfter(spent()-before+may.others)
		if whom != 0 && !p.cells.frozenAbove() { // else it takes its signals when its owner resumes it
			// What a long write has made dirty since they were looked at is not what this costs.
			if err := p.look(now); err != nil {
				return err
			}
			return p.grant(whom, what, 0)
		}
	}
	p.due = p.next
	if p.stopped && p.looked {
		p.due = min(p.next, max(c.due, now+courtesyLook))
	}
	return nil
}

// signalsAfter is when to check for signals again, where a check of all paused groups takes so much
// processor time.
func signalsAfter(took time.Duration) time.Duration {
	rarely := time.Duration(float64(took) / signalShare)
	late := max(signalLate, time.Duration(float64(took)/signalShareMost))
	return max(signalEvery, min(rarely, late))
}

// grant resumes a process, alone if it can be: for a signal, or to take note of a child's end.
func (p *paced) grant(whom int, what process.Signals, child int) error {
	c := &p.courtesy
	alone := len(p.roster.members) > 1 && p.cells.release(whom) == nil
	now := clockNow()
	c.whom, c.what, c.ended, c.over, c.begun, c.cost = whom, what, child, false, now, 0
	c.most = p.bucket.level - p.bucket.rate*courtesyCost.Seconds()
	c.until = now + courtesyMost
	if what.Ending|what.Asking != 0 || child != 0 {
		c.until = now + endMost
	}
	if what.Ending|what.Asking&^what.Child != 0 || child != 0 {
		c.ends = now + goingFor
	}
	p.due = now + courtesyLook
	if alone {
		return nil
	}
	return p.set(false)
}

// withdraw ends a courtesy. Another process that has to take a signal after that need not wait.
func (p *paced) withdraw(taken bool) error {
	c := &p.courtesy
	if taken {
		c.due = 0
	}
	c.owes, c.whom, c.begun = c.whom, 0, clockNow()
	if err := p.cells.retake(); err != nil {
		return err
	}
	return p.halt(clockNow())
}

// serve lets a process that was resumed for a signal go on: until the signal is taken, or, if it
// may end the process, until the process has ended and its parent has taken note.
func (p *paced) serve(now time.Duration) error {
	c := &p.courtesy
	left, gone := process.SignalsOf(c.whom)
	ended := gone != nil || left.Ended
	if ended && p.cells.isFree(c.whom) {
		parent, child := c.what.Parent, c.whom
		if !slices.Contains(p.roster.members, parent) {
			return p.withdraw(true)
		}
		if err := p.look(now); err != nil {
			return err
		}
		what, _ := process.SignalsOf(parent) // one that is gone too is found to be next time
		return p.grant(parent, what.Ends(), child)
	}
	if c.ended != 0 && !c.over {
		_, reaped := process.SignalsOf(c.ended)
		ended = reaped != nil
	}
	if ended && !c.over {
		c.over, c.until = true, now+takeLeast
	}
	taken := c.of(left, now).Waiting&c.what.Waiting == 0
	is := c.known[c.whom]
	if taken && c.what.Asking != 0 || c.ended != 0 {
		is.going = now + goingFor
	}
	if taken && c.what.Ending == 0 && c.ended == 0 {
		c.until = min(c.until, now+courtesyMost)
	}
	is.unkind, is.last = !taken, now
	c.know(c.whom, is)
	if now < c.until && (!taken || now < is.going || c.over) {
		if err := p.look(now); err != nil {
			return err
		}
		least := c.what.Ending|c.what.Asking != 0 || c.ended != 0
		if p.bucket.level > c.most || c.over || least && now-c.begun < takeLeast {
			p.due = now + courtesyLook
			return nil
		}
	}
	if taken && c.what.Asking != 0 && p.cells.isFree(c.whom) {
		if next, what := p.signalled(now); what.Ending != 0 {
			return p.passOn(next, what, now)
		}
	}
	return p.withdraw(taken && c.what.Asking != 0 || c.over)
}

// passOn resumes a process that ends by a signal of the one that was resumed before: timeout(1) ends
// its command so. That one goes on as well, to take note of the end. To pause it first, and resume it
// again, would take two more moves, each of which can take up to 95 ms.
func (p *paced) passOn(next int, what process.Signals, now time.Duration) error {
	c := &p.courtesy
	c.owes = c.whom
	c.settle(p.bucket.rate, now)
	return p.grant(next, what, 0)
}

// signalled finds a member with a pending signal: first one that the signal ends, and last one
// without, that is about to end.
func (p *paced) signalled(now time.Duration) (pid int, which process.Signals) {
	c := &p.courtesy
	most := 0
	for _, member := range p.roster.members {
		s, err := process.SignalsOf(member)
		if err != nil || s.Ended {
			continue
		}
		s = c.of(s, now)
		is, rank := c.known[member], 0
		wait := is.wait
		if s.Ending != 0 {
			wait = min(wait, is.last+endEvery)
		}
		switch {
		case s.Ending != 0 && !is.unkind:
			return member, s
		case now < wait:
		case s.Waiting != 0:
			rank = 2
		case now < is.going:
			rank = 1
		}
		if rank > most {
			most, pid, which = rank, member, s
		}
	}
	return pid, which
}

// of are the signals of a process, as far as it is resumed for them. A child that has ended by itself has
// nobody end: else a shell whose command ends in the moment of a pause would run on, and might be done before
// it has paid for that command.
func (c *courtesy) of(s process.Signals, now time.Duration) process.Signals {
	if now < c.ends {
		return s.Ends()
	}
	return s
}

// know keeps a standing.
func (c *courtesy) know(pid int, is standing) {
	if c.known == nil || len(c.known) > 100 { // most are of the past
		c.known = make(map[int]standing)
	}
	c.known[pid] = is
}

// paid adds what was written since the last look to what a courtesy cost, in bytes.
func (c *courtesy) paid(bytes float64) { c.cost += max(0, bytes) }

// settle records what the last courtesy cost.
func (c *courtesy) settle(rate float64, now time.Duration) {
	if c.owes == 0 {
		return
	}
	is := c.known[c.owes]
	is.wait = now + time.Duration(courtesyPause*c.cost/rate*float64(time.Second))
	c.know(c.owes, is)
	c.owes = 0
}
