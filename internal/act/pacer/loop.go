package pacer

import (
	"container/heap"
	"time"
)

// share is the largest share of one processor that the pacer takes while groups write all the
// time and the machine keeps up.
const share = 0.006

// shareMost is the largest share that it takes to look at groups that do not need to be paused.
const shareMost = 0.04

// cycleLeast and cycleMost bound the time between two pauses of processes that write all the
// time.
const (
	cycleLeast = 4 * time.Millisecond
	cycleMost  = 80 * time.Millisecond
)

// A loop looks at each of its groups when that group is due.
type loop struct {
	groups queue
	look   time.Duration // of processor time, that a look has taken lately, with waking up for it
	spent  time.Duration // by the end of the last look
	at     time.Duration // the last look
	credit time.Duration // of processor time; less than 0: a debt
}

// creditMost is how much processor time is kept for later, and the debt with which groups
// are stopped as rarely as may be. A greater debt, up to owedMost, is paid for: a kernel
// whose clock is its tick (User-mode Linux) counts 10 ms at once, or nothing.
const (
	creditMost = 10 * time.Millisecond
	owedMost   = 4 * creditMost
)

// pace is what the pacer's share of a processor allows.
type pace struct {
	cycle time.Duration // from one stop of a group to its next, with the credit that there is
	lull  time.Duration // between two looks at a group that writes nothing
	soon  time.Duration // between two looks at one that may be about to write
	eager bool          // there is credit to look more often for a while
	greet bool          // there is some for who has just come

	others time.Duration // that a look at each paused group but one takes
}

func (l *loop) pace() pace {
	groups := time.Duration(len(l.groups))
	p := pace{cycle: cycleLeast, soon: time.Duration(float64(l.look*groups) / shareMost)}
	p.lull = min(max(time.Duration(float64(l.look*groups)/share), cycleLeast/4), cycleLeast*groups)
	p.lull = max(p.lull, p.soon)
	for _, g := range l.groups {
		if g.stopped {
			p.others += l.look
		}
	}
	p.others = max(0, p.others-l.look)
	p.greet = l.credit > -creditMost
	if p.eager = l.credit > 0; l.credit < 0 {
		most := cycleMost * max(1, groups/10)
		p.cycle += time.Duration(float64(most-cycleLeast) * min(1, float64(-l.credit)/float64(creditMost)))
	}
	return p
}

// next returns when the first group is due; ok is false without groups.
func (l *loop) next() (due time.Duration, ok bool) {
	if len(l.groups) == 0 {
		return 0, false
	}
	return l.groups[0].due, true
}

// lateLeast is how late a step is at least that was not let begin: a real-time thread wakes earlier
// than that.
const lateLeast = time.Millisecond

// step looks at the first group, which is due now.
func (l *loop) step(now time.Duration) error {
	late := now - max(l.groups[0].due, l.at)
	if err := l.groups[0].step(now, l.pace()); err != nil {
		return err
	}
	spent, at := spent(), clockNow()
	l.account(spent-l.spent, at-l.at, late)
	l.spent, l.at = spent, at
	heap.Init(&l.groups) // it may have stopped others
	return nil
}

// account adds a look that took so much processor time, so long after the last one. One that began
// late counts as any other: where the clock of a virtual machine is all that there is, its kernel
// charges who runs next for the time that the host had taken. If that counted, the pacer would look
// ever more rarely, and a group would write for a tenth of a second unseen.
func (l *loop) account(took, since, late time.Duration) {
	if late > lateLeast {
		took = min(took, l.look)
	}
	l.look += (took - l.look) / 16
	l.credit += time.Duration(share*float64(since)) - took
	l.credit = min(max(l.credit, -owedMost), creditMost)
}

// queue is a heap of groups, the first due on top.
type queue []*paced

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*paced)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// remove takes a group out.
func (l *loop) remove(p *paced) {
	for i, q := range l.groups {
		if q == p {
			heap.Remove(&l.groups, i)
			return
		}
	}
}
