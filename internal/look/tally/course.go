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
	looked  time.Time     // the end of the last moment
	busy    time.Time     // until when the throttle needs for what it has charged (cgroup v1)
	idle    time.Duration // for how much longer the last stint could have written at the limit: see idles
	blurred time.Duration // of that, what could not be taken from the last stint: see goOn
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

// A stint is a time in which something was done again and again, as much as the limit lets through
// or nearly so.
type stint struct {
	Span
	paused  time.Duration
	blurred time.Duration
	busy    time.Time
	past    bool // it went past the limit, as far as was known
	amount
}

// goesOn reports whether the next stint followed at once: less was done than the limit lets through,
// and not nothing.
func (s stint) goesOn(next stint) bool {
	return !next.First.IsZero() && next.First.Sub(s.Last) <= idleLeast
}

const (
	// idleLeast is for how long nothing is done between two stints, or how much time the last one
	// has left over, beside the time that the throttle may keep the next request for.
	idleLeast = time.Second
	// stintsMost bounds how many are kept. Then those that followed each other at once become one.
	stintsMost = 4096
	// requestMost is the size of a request that may pass at once, and requestCap the largest that
	// is believed: large folios make requests of several megabytes.
	requestMost = 1 << 20
	requestCap  = 16 << 20
)

// bounds are the two rates of a limit in one direction.
type bounds struct{ bytes, ops limit.Rate }

// some reports whether there is any.
func (b bounds) some() bool {
	_, bytes := b.bytes.Number()
	_, ops := b.ops.Number()
	return bytes || ops
}

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
	before, now time.Time     // when reading began the time before, and when it was over this time
	read        time.Time     // when reading began this time
	since       time.Time     // when the first write can have been
	escaped     uint64        // how much more than ever seems to have escaped, to any disk
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
	c.idles(m, b.need(bytes+m.escaped, ops))
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

// idles takes in how much more the limit would have let through in a moment. As in the throttle,
// nothing makes up for more than the time before it. Time for which somebody was kept from writing
// is not left over.
func (c *Course) idles(m moment, need time.Duration) {
	free := m.now.Sub(later(later(m.before, c.looked), c.busy))
	if c.looked = m.now; c.First.IsZero() {
		return
	}
	if m.halted || m.waits {
		free = 0
	}
	c.idle = max(0, c.idle+max(0, free)-need)
}

// rested reports whether the last stint is over: nothing was done for longer than the throttle or
// the pacer keeps anybody from it, or so little that as much time is left over. Else a line of a
// log each second would save up the limit for a burst.
func (c *Course) rested(now time.Time, b bounds) bool {
	least := idleLeast + 2*b.need(max(requestMost, c.request), 1)
	return !c.First.IsZero() && (now.Sub(later(c.last, c.busy)) > least || c.idle > least)
}

// end ends the last stint. It returns false if there are too many already.
func (c *Course) end(all amount, b bounds) bool {
	if len(c.done) >= stintsMost {
		c.condense()
	}
	if len(c.done) >= stintsMost {
		return false
	}
	var was amount
	if n := len(c.done); n > 0 {
		was = c.done[n-1].amount
	}
	bytes := all.bytes - min(all.bytes, was.bytes) + all.escaped - min(all.escaped, was.escaped)
	past := !b.within(bytes, all.ops-min(all.ops, was.ops), c.Duration()+c.paused, c.request)
	c.done = append(c.done, stint{c.Span, c.paused, c.blurred, c.busy, past, all})
	c.Span, c.paused, c.idle, c.blurred = Span{}, 0, 0, 0
	return true
}

// condense makes one of each two stints that followed each other at once, unless one of them went
// past the limit.
func (c *Course) condense() {
	kept := c.done[:0]
	for i := 0; i < len(c.done); i++ {
		s := c.done[i]
		if i+1 < len(c.done) && s.goesOn(c.done[i+1]) && !s.past && !c.done[i+1].past {
			i++
			s = s.before(c.done[i])
		}
		kept = append(kept, s)
	}
	c.done = kept
}

// before is a stint and the next as one: amounts are totals.
func (s stint) before(next stint) stint {
	next.Span = s.with(next.Span)
	next.blurred += s.blurred
	return next
}

// goOn has the last stint go on, though it should have ended: its time that is left over is in
// doubt.
func (c *Course) goOn(now time.Time) {
	c.last, c.blurred, c.idle = now, c.blurred+c.idle, 0
}

// stints are all stints, with what was done in each.
func (c *Course) stints(all amount) []stint {
	// What seems to have escaped, and is charged later, has waited in the throttle until then: the
	// time between is that of the limit.
	// What escapes in a stint that wrote less was written before, if that one followed at once.
	stints := []stint{{c.Span, c.paused, c.blurred, c.busy, false, all}}
	for _, s := range slices.Backward(c.done) {
		next := &stints[len(stints)-1]
		waited := s.estimated > next.estimated+slack()
		s.escaped, s.written, s.estimated = min(s.escaped, next.escaped), min(s.written, next.written), min(s.estimated, next.estimated)
		late := s.goesOn(*next) && next.escaped-s.escaped > next.written-s.written+slack()
		if (waited || late) && !next.First.IsZero() {
			estimated := s.estimated
			*next = s.before(*next)
			next.estimated = estimated
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
// to have escaped, so many bytes were written by nobody: any stint can have had them. blurred says
// that a stint kept within the limit only by time in which it may have done nothing.
func (c *Course) judge(b bounds, all amount, ended time.Time, queued time.Duration, spare uint64) (took time.Duration, past *Burst, blurred bool) {
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
		blurred = blurred || kept && s.blurred > 0 && !b.within(bytes, s.ops, max(0, t-s.blurred), c.request)
		switch {
		case kept && !last && s.goesOn(stints[i+1]):
			t = max(t, until.Sub(s.First))
		case kept && !last: // what the throttle lets through at once has its time too
			t = max(t, min(b.need(bytes, s.ops), until.Sub(s.First)))
		}
		took += t
		if over := b.need(bytes, s.ops) - t; !kept && (past == nil || over > worst) {
			past, worst = &Burst{bytes, s.ops, t}, over
		}
	}
	return took, past, blurred
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
