package pacer

import (
	"slices"
	"time"
)

// paced is one group that the pacer holds.
type paced struct {
	roster roster
	meter  meter
	cells  cells
	bucket bucket

	courtesy courtesy

	stops   uint64        // how often they were stopped
	paused  time.Duration // for how long in all, but for a pause that goes on
	told    time.Duration // of that, in sums
	stopped bool
	looked  bool          // they were looked at since
	settled bool          // and next is when they may go on
	joined  bool          // they are stopped as long as their owner has them so: see join
	let     time.Duration // when the processes were let go last
	halted  time.Duration // when they were stopped last
	seen    time.Duration // the last look
	fresh   time.Duration // when somebody has come last, or was born there
	came    time.Duration // when somebody has come last
	waits   time.Duration // until when a loan, or a doubt, has them stopped
	vain    time.Duration // by how much a watch is shorter: see watch
	speed   float64       // how fast they wrote when they last could, in bytes a second
	fast    float64       // how fast they have written lately at most
	quiet   time.Duration // since when they have written nothing
	asked   time.Duration // when their owner's pause was looked for last
	trust   time.Duration // how long they may go on unseen
	next    time.Duration // what is to be done next, stop them, look or let them go, is to be done then
	due     time.Duration // when the loop is to come back: no later than that
	lenient time.Duration // until when no long debt is paid: see forgive
}

const (
	// runLeast is the shortest time for which processes are resumed: waking them takes part of
	// it.
	runLeast = 60 * time.Microsecond
	// lateMost: a pause may be late by an eighth of the time for which the processes were
	// resumed. Otherwise processes that slow down would be looked at more and more often.
	lateMost = 8
	// letPart is that part for those who come and go, where the pacer has taken its processor
	// time.
	letPart = 3
	// freshPart is which part of the time since somebody has come nobody may look at them: what
	// they write at first is at once, and as fast as memory is.
	freshPart = 32
	// greetMost is for how long that is so for who has come from elsewhere, such as a command
	// that is just started, also where the pacer has taken its processor time.
	greetMost = 16 * time.Millisecond
	// runMost is how long nobody looks at processes that write less than they may.
	runMost = 4 * time.Millisecond
	// settleTime is how long a process takes to return from the kernel, usually from a write of
	// a megabyte.
	settleTime = 500 * time.Microsecond
	// quietMost is how long processes that write nothing are looked at as if they were about to
	// write.
	quietMost = 200 * time.Millisecond
	// fastFor is how long the pacer remembers how fast processes can write, per time that they
	// run.
	fastFor = 2 * time.Second
	// keptCharge is how much of an early charge is kept for the group, as time at its rate: a
	// program that syncs has already been paused here for what the kernel charges.
	keptCharge = time.Second
	// lenientFor is how long a pacer that has just taken a group over, or has a new guard, may
	// be late now and then (33 ms were seen). debtMost is the largest debt that is repaid from
	// that time, so that no process is paused for a second because another process was killed.
	lenientFor = time.Second
	debtMost   = 500 * time.Millisecond
)

// forgive makes the pacer drop long debts for a while.
func (p *paced) forgive() { p.lenient = clockNow() + lenientFor }

// begin pauses the processes, as the first look expects. It resumes those that can be left
// alone.
func (p *paced) begin(rate uint64) error {
	if p.rests(clockNow()) == 0 {
		if err := p.set(true); err != nil {
			return err
		}
	}
	listed := clockNow()
	if err := p.bring(listed); err != nil {
		return err
	}
	now := clockNow()
	p.bucket, p.seen, p.quiet, p.trust = newBucket(rate, now), now, now, runLeast/2
	p.plan(now)
	_, err := p.meter.look(listed, p.roster.members)
	return err
}

// plan sets when the next step is due.
func (p *paced) plan(at time.Duration) { p.next, p.due = at, at }

// bring lists the processes, and moves newcomers to where they can be paused.
func (p *paced) bring(now time.Duration) error {
	arrived := p.roster.arrived
	afresh, whole, err := p.roster.look(now)
	if err != nil || !afresh {
		return err
	}
	if arrived {
		p.meter.joined()
	}
	if !slices.Equal(p.roster.before, p.roster.members) {
		if p.fresh = now; len(p.roster.before) == 0 { // the first ones
			p.came = now
		}
	}
	if p.rests(now) > 0 { // nobody is to be stopped; those who were may have gone
		if whole && len(p.cells.all) > 0 {
			p.cells.tidy(&p.roster, now)
		}
		return nil
	}
	if arrived { // to bring somebody takes up to 95 ms, in which that is to be counted
		unseen, err := p.meter.look(now, p.roster.members)
		if err != nil {
			return err
		}
		p.count(unseen, now)
		p.share()
	}
	if _, err := p.cells.gather(&p.roster, now); err != nil {
		return err
	}
	if whole && p.cells.untidy(&p.roster, now) {
		p.cells.tidy(&p.roster, now)
	}
	return nil
}

// greet is called when a process has joined the group. To count it from its first write, the
// pacer looks at once, or as soon as the writers are paused.
func (p *paced) greet(now time.Duration) error {
	if err := p.bring(now); err != nil {
		return err
	}
	p.came = now
	if p.stopped {
		p.looked, p.settled = false, false
		now += settleTime
	}
	p.plan(min(p.next, now))
	return nil
}

// step does what is due, as far as the pacer's own processor time allows.
//
// It looks at paused processes once those that were in the kernel have returned from it.
func (p *paced) step(now time.Duration, may pace) error {
	if p.roster.arrived {
		if err := p.greet(now); err != nil {
			return err
		}
		now = clockNow()
	}
	if now < p.next {
		return p.attend(now, may)
	}
	p.courtesy.whom = 0 // all may go on now
	if err := p.cells.retake(); err != nil {
		return err
	}
	if p.stopped && now < p.waits {
		return p.wait(now)
	}
	if stays, err := p.stays(now, may); stays || err != nil {
		return err
	}
	switch {
	case p.stopped && !p.settled:
		if later, err := p.settle(now, may); later || err != nil {
			return err
		}
	case p.stopped:
		p.bucket.fill(now)
		if err := p.set(false); err != nil {
			return err
		}
		if p.spends() {
			return p.halt(clockNow())
		}
		now = clockNow()
	case p.bucket.level+(p.bucket.rate-p.speed)*(now-p.seen).Seconds() >= 0:
		if err := p.look(now); err != nil {
			return err
		}
	case p.writes():
		return p.halt(clockNow())
	default: // it is not what was thought
		if err := p.look(clockNow()); err != nil {
			return err
		}
		now = p.seen
	}
	if p.bucket.level < 0 {
		_ = p.writes() // they are stopped anyway
		return p.halt(clockNow())
	}
	if p.doubts(now) { // to be told takes a pause
		return p.halt(clockNow())
	}
	if p.joins(now) {
		return p.join(now, may)
	}
	p.plan(now + p.run(now, may))
	return nil
}

// halt pauses the processes, and plans a look once they are paused.
func (p *paced) halt(now time.Duration) error {
	p.looked, p.settled = false, false
	p.plan(now + settleTime)
	return p.set(true)
}

func (p *paced) look(now time.Duration) error {
	if err := p.bring(now); err != nil {
		return err
	}
	unseen, err := p.meter.look(now, p.roster.members)
	if err == nil {
		p.count(unseen, now)
		p.share()
	}
	return err
}

// count adds what was written to the debt. What a look at paused processes finds is what they
// wrote before the pause.
func (p *paced) count(unseen float64, now time.Duration) {
	p.bucket.depth = depthQuiet
	if now-p.quiet < quietMost {
		p.bucket.depth = depthBusy
	}
	p.bucket.fill(now)
	p.bucket.take(unseen)
	p.courtesy.paid(unseen)
	p.bucket.level = min(p.bucket.level, p.bucket.rate*keptCharge.Seconds())
	if now < p.lenient {
		p.bucket.level = max(p.bucket.level, -p.bucket.rate*debtMost.Seconds())
	}
	end := now
	if p.stopped {
		end = p.halted
	}
	if unseen > 0 {
		p.quiet = now
	}
	// After the last look at the paused processes, more bytes come from the rest of their last
	// system calls. Very short runs say nothing about the speed.
	if ran := end - max(p.let, p.seen); ran > runLeast {
		if p.speed == 0 && unseen > 0 { // they have begun within that time: how fast they are is to be seen
			p.trust = min(p.trust, runMost/4)
		}
		p.speed = max(0, unseen) / ran.Seconds()
		p.fast = max(p.speed, p.fast*(1-min(1, ran.Seconds()/fastFor.Seconds())))
	}
	p.seen = now
}

// share has the bucket pay for what the kernel has charged. What escapes pays for the rest: after
// each pause the kernel's throttle lets through what it has saved of its slices.
func (p *paced) share() {
	rest := p.bucket.share(p.meter.charged())
	if m, is := p.meter.(*escaped); is {
		m.owed.Keep(rest)
	}
}

// run is how long the processes may go on: until they have written what the bucket holds, at
// their last speed. At first, and while they write nothing (they may not be awake yet, or wait
// for a disk), the runs are short and grow up to the time in which they could write that.
func (p *paced) run(now time.Duration, may pace) time.Duration {
	if rest := p.rests(now); rest > 0 {
		if len(p.cells.all) > 0 { // they are removed when they are empty
			rest = min(rest, gatherEvery)
		}
		return rest
	}
	soon := p.soon(now, may)
	if p.speed == 0 && now-p.quiet > quietMost {
		return min(may.lull, soon)
	}
	p.trust = min(2*p.trust, max(may.cycle, may.lull, runMost))
	if p.fast == 0 { // they have just been started, and may write all they want to at once
		return min(p.trust, cycleLeast/8, soon)
	}
	if p.speed == 0 {
		return min(p.trust, may.cycle/8, max(p.lasts(p.fast), may.soon), soon)
	}
	return min(max(p.lasts(p.speed), (now-p.let)/lateMost, runLeast), p.trust)
}

// soon is how long nobody looks at most at processes that have just been let go, or have just
// come: at first for moments.
func (p *paced) soon(now time.Duration, may pace) time.Duration {
	wait, let, fresh := time.Hour, now-p.let, now-p.fresh
	switch came := now - p.came; {
	case alone && came > greetMost: // who is to be stopped does not run while the pacer does
	case may.eager:
		wait = min(let/lateMost, fresh/freshPart)
	case may.greet && came < greetMost:
		wait = came / freshPart
	case p.fast > 0 && fresh > quietMost:
		wait = let / lateMost
	case p.fast > 0: // they come and go
		wait = let / letPart
	}
	return max(runLeast, wait)
}

// lasts is how long it takes to write what the bucket has, and gets meanwhile.
func (p *paced) lasts(speed float64) time.Duration {
	if speed <= p.bucket.rate {
		return time.Hour
	}
	return time.Duration(p.bucket.level / (speed - p.bucket.rate) * float64(time.Second))
}

// letGo resumes the processes, also after a pause that failed half way.
func (p *paced) letGo() error {
	if !p.stopped {
		return p.cells.set(false)
	}
	return p.set(false)
}

func (p *paced) set(stop bool) error {
	if p.stopped == stop {
		return nil
	}
	if stop && p.rests(clockNow()) == 0 { // who was left alone is in no cell yet
		if _, err := p.cells.gather(&p.roster, clockNow()); err != nil {
			return err
		}
		p.stops++
	}
	if err := p.cells.set(stop); err != nil {
		return err
	}
	p.stopped = stop
	if stop {
		p.halted = clockNow()
		p.trust = max(p.halted-p.let, runLeast) / 2
	} else {
		p.resumed(clockNow())
		p.courtesy.settle(p.bucket.rate, p.let) // they write for themselves from now on
	}
	return nil
}
