package pacer

import (
	"time"

	"github.com/weir-io/weir/internal/process"
)

// A courtesy resumes paused processes for a moment if one of them has a pending signal: on v1 a
// frozen process takes no signal, not even SIGKILL. What the processes write meanwhile is added
// to the debt.
type courtesy struct {
	due    time.Duration         // when to look for signals next
	whom   int                   // who is let go for one; 0: nobody
	what   process.Signals       // which signals those are
	until  time.Duration         // for how long at most
	over   bool                  // it has ended; its parent, which may be paused too, is to take note
	most   float64               // to which level of the bucket at least
	owes   int                   // who was let go last, until what that cost is known
	waits  map[int]time.Duration // until when who has cost something is not let go again
	going  map[int]time.Duration // until when who has caught a signal to end may have to do that
	since  map[int]time.Duration // when who did not take a signal that ends it was let go
	unkind map[int]bool          // who did not take a signal that ends it, in the time there was
}

const (
	// signalEvery is how often paused processes are checked for signals.
	signalEvery = 60 * time.Millisecond
	// shortMost is how long they may be paused without a check for signals.
	shortMost = 90 * time.Millisecond
	// signalShare is the largest share of a processor that these checks may take.
	signalShare = 0.02
	// courtesyMost is the longest time for which they are resumed for a signal. endMost is the
	// same for a signal that ends a process (on a busy machine it gets a processor late, and
	// writes nothing more). courtesyLook is how often the pacer checks whether the signal has
	// been taken.
	courtesyMost = 5 * time.Millisecond
	endMost      = 100 * time.Millisecond
	courtesyLook = 200 * time.Microsecond
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
func (p *paced) attend(now time.Duration) error {
	c := &p.courtesy
	switch {
	case c.whom != 0:
		goOn, err := p.serve(now)
		if err != nil || goOn {
			p.due = now + courtesyLook
			return err
		}
		c.owes, c.whom = c.whom, 0
		return p.halt(now)
	case p.stopped && p.settled && now >= c.due:
		before := spent()                    // to bring somebody may take long, and no processor time
		if err := p.bring(now); err != nil { // the group may have gone, or emptied
			return err
		}
		c.whom, c.what = p.signalled(now)
		took := spent() - before
		c.due = now + max(signalEvery, time.Duration(float64(took)/signalShare))
		if c.whom != 0 {
			// What a long write has made dirty since they were looked at is not what this costs.
			if err := p.look(now); err != nil {
				return err
			}
			now = clockNow()
			c.most = p.bucket.level - p.bucket.rate*courtesyCost.Seconds()
			c.over, c.until = false, now+courtesyMost
			if c.what.Ending != 0 {
				c.until = now + endMost
			}
			p.due = now + courtesyLook
			return p.set(false)
		}
	}
	p.due = p.next
	if p.stopped && p.settled {
		p.due = min(p.next, max(c.due, now+courtesyLook))
	}
	return nil
}

// serve reports whether processes that were resumed for a signal may go on: until the signal is
// taken, or, if it may end the process, until the process has ended.
func (p *paced) serve(now time.Duration) (goOn bool, err error) {
	c := &p.courtesy
	left, gone := process.SignalsOf(c.whom)
	taken := left.Waiting&c.what.Waiting == 0
	if taken && c.what.Asking != 0 {
		if c.going == nil {
			c.going = make(map[int]time.Duration)
		}
		c.going[c.whom] = now + goingFor
	}
	_, going := c.going[c.whom]
	if (gone != nil || left.Ended) && !c.over {
		c.over, c.until = true, now+takeLeast
	}
	if now < c.until && (!taken || going || c.over) {
		if err := p.look(now); err != nil {
			return false, err
		}
		if p.bucket.level > c.most || c.over || c.what.Ending|c.what.Asking != 0 && now-p.let < takeLeast {
			return true, nil
		}
	}
	if c.unkind == nil {
		c.unkind = make(map[int]bool)
	}
	if c.unkind[c.whom] = !taken; !taken {
		if c.since == nil {
			c.since = make(map[int]time.Duration)
		}
		c.since[c.whom] = now
	}
	return false, nil
}

// signalled finds a member with a pending signal, or with one that is about to end it.
func (p *paced) signalled(now time.Duration) (pid int, which process.Signals) {
	c := &p.courtesy
	for _, pid := range p.roster.members {
		s, err := process.SignalsOf(pid)
		if err != nil || s.Ended {
			continue
		}
		until, going := c.going[pid]
		if going && now > until {
			delete(c.going, pid)
			going = false
		}
		wait := c.waits[pid]
		if s.Ending != 0 {
			wait = min(wait, c.since[pid]+endEvery)
		}
		if s.Ending != 0 && !c.unkind[pid] || (s.Waiting != 0 || going) && now >= wait {
			return pid, s
		}
	}
	return 0, process.Signals{}
}

// paid records what a courtesy cost, in bytes.
func (c *courtesy) paid(bytes, rate float64, now time.Duration) {
	if c.owes == 0 {
		return
	}
	if c.waits == nil || len(c.waits) > 100 { // most are of the past
		c.waits, c.unkind, c.going, c.since = make(map[int]time.Duration), nil, nil, nil
	}
	c.waits[c.owes] = now + time.Duration(courtesyPause*max(0, bytes)/rate*float64(time.Second))
	c.owes = 0
}
