package tally

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
)

// A Course is when and how much a group wrote to a device. Its Span is that of the last stint. A
// command that does something else between two stints saves up nothing: each stint is judged
// alone.
type Course struct {
	Span
	last    time.Time     // when something was done, or waited, or the processes were paused
	busy    time.Time     // until when the throttle needs for what it has charged (cgroup v1)
	paused  time.Duration // by weir's pacer, since something was done
	request uint64        // bytes of the largest request that was seen
	done    []stint       // those before, with all that was done until their end
}

// An amount is how much was done.
type amount struct {
	bytes, ops uint64 // charged
	written    uint64 // by the processes, to any disk
	escaped    uint64 // bytes
	estimated  uint64 // the same by the Estimate, which counts what waits in the throttle too; or cut off files since
}

// A stint is a time in which something was done again and again.
type stint struct {
	Span
	paused time.Duration
	busy   time.Time
	amount
}

const (
	// idleLeast is for how long nothing is done between two stints, beside the time that the
	// throttle may keep the next request for.
	idleLeast = time.Second
	// stintsMost bounds how many are kept: what comes later is one stint.
	stintsMost = 4096
	// requestMost is the size of a request that may pass at once, and requestCap the largest that
	// is believed: large folios make requests of several megabytes.
	requestMost = 1 << 20
	requestCap  = 16 << 20
)

// bounds are the two rates of a limit in one direction.
type bounds struct{ bytes, ops limit.Rate }

// need is how long so much takes at the limit.
func (b bounds) need(bytes, ops uint64) time.Duration {
	var most time.Duration
	for _, of := range []struct {
		rate limit.Rate
		much uint64
	}{{b.bytes, bytes}, {b.ops, ops}} {
		if n, bounded := of.rate.Number(); bounded {
			most = max(most, time.Duration(float64(of.much)/float64(n)*float64(time.Second)))
		}
	}
	return most
}

// A moment is the time between two looks at a group.
type moment struct {
	before, now time.Time
	since       time.Time     // when the first write can have been
	wrote       bool          // its processes wrote, to any disk
	waits       bool          // more waits in the throttle, or at the disk, than passes at once
	paused      time.Duration // by weir's pacer
	halted      bool          // somebody has them paused
	queues      bool          // the throttle charges before it holds up (cgroup v1)
}

// see takes in what was charged in a moment.
func (c *Course) see(m moment, bytes, ops uint64, b bounds) {
	if ops > 0 {
		c.request = max(c.request, min(bytes/ops, requestCap))
	}
	if ops > 0 && m.queues {
		c.busy = later(c.busy, m.before).Add(b.need(bytes, ops))
	}
	if m.wrote {
		c.grew(m.since, m.now)
	}
	if bytes > 0 {
		c.grew(m.before, m.now)
	}
	switch {
	case m.wrote || bytes > 0:
		c.last, c.paused = m.now, 0
	case m.halted || m.waits:
		c.last = m.now
		c.paused += m.paused
	}
}

// rested reports whether the last stint is over: nothing was done for longer than the throttle or
// the pacer keeps anybody from it.
func (c *Course) rested(now time.Time, b bounds) bool {
	if c.First.IsZero() || len(c.done) >= stintsMost {
		return false
	}
	return now.Sub(later(c.last, c.busy)) > idleLeast+2*b.need(max(requestMost, c.request), 1)
}

// end ends the last stint.
func (c *Course) end(all amount) {
	c.done = append(c.done, stint{c.Span, c.paused, c.busy, all})
	c.Span, c.paused = Span{}, 0
}

// stints are all stints, with what was done in each.
func (c *Course) stints(all amount) []stint {
	// What seems to have escaped, and is charged later, has waited in the throttle until then: the
	// time between is that of the limit.
	stints := []stint{{c.Span, c.paused, c.busy, all}}
	for _, s := range slices.Backward(c.done) {
		next := &stints[len(stints)-1]
		waited := s.estimated > next.estimated+slack()
		s.escaped, s.written, s.estimated = min(s.escaped, next.escaped), min(s.written, next.written), min(s.estimated, next.estimated)
		if waited && !next.First.IsZero() {
			next.Span, next.estimated = s.with(next.Span), s.estimated
			continue
		}
		stints = append(stints, s)
	}
	slices.Reverse(stints)
	for i := len(stints) - 1; i > 0; i-- {
		s, before := &stints[i].amount, stints[i-1].amount
		s.bytes, s.ops = s.bytes-min(s.bytes, before.bytes), s.ops-min(s.ops, before.ops)
		s.written, s.escaped = s.written-before.written, s.escaped-before.escaped
	}
	if len(c.done) == 0 {
		return stints
	}
	for i := range stints { // what was made dirty before can be seen to escape later
		stints[i].escaped = min(stints[i].escaped, stints[i].written)
	}
	if last := len(stints) - 1; stints[last].First.IsZero() {
		stints = stints[:last]
	}
	return stints
}

// A Burst is the stint that went past a limit by most.
type Burst struct {
	Bytes uint64 // charged, and past the limit
	Ops   uint64
	Took  time.Duration
}

// judge says how long all of it took, without the time in which nothing was done, and which stint
// went past the limit; nil: none did. What still waits in the throttle needs so long. Of what seems
// to have escaped, so many bytes were written by nobody: any stint can have had them.
func (c *Course) judge(b bounds, all amount, ended time.Time, queued time.Duration, spare uint64) (took time.Duration, past *Burst) {
	var worst time.Duration
	stints := c.stints(all)
	if len(stints) == 1 {
		spare = 0 // all has been taken out of the whole
	}
	for i, s := range stints {
		t, until, last := s.Duration(), ended, i == len(stints)-1
		if last {
			t += queued
		} else {
			until = stints[i+1].First
		}
		bytes := s.bytes + s.escaped - min(s.escaped, spare)
		kept := b.within(bytes, s.ops, t, c.request)
		if !kept { // it may have been paid for after it
			if t += s.paused; s.busy.After(s.Last) {
				t += max(0, earlier(s.busy, until).Sub(s.Last))
			}
			kept = b.within(bytes, s.ops, t, c.request)
		}
		if kept && !last { // what the throttle lets through at once has its time too
			t = max(t, min(b.need(bytes, s.ops), until.Sub(s.First)))
		}
		took += t
		if over := b.need(bytes, s.ops) - t; !kept && (past == nil || over > worst) {
			past, worst = &Burst{bytes, s.ops, t}, over
		}
	}
	return took, past
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
