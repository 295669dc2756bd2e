package prove

import (
	"fmt"
	"time"
)

// A Verdict says whether a limit holds.
type Verdict string

// The verdicts.
const (
	Held         Verdict = "held"               // at the writer, too
	HeldAtDevice Verdict = "held at the device" // the writer ran ahead, into memory
	NotHeld      Verdict = "not held"
	CannotTell   Verdict = "cannot tell"
)

// Worst returns the verdict that a set of rows has as a whole: not held before cannot
// tell before held. Without rows nothing is known.
func Worst(all []Verdict) Verdict {
	worst := Verdict("")
	rank := map[Verdict]int{"": -1, Held: 0, HeldAtDevice: 1, CannotTell: 2, NotHeld: 3}
	for _, v := range all {
		if rank[v] > rank[worst] {
			worst = v
		}
	}
	if worst == "" {
		return CannotTell
	}
	return worst
}

// A Reason is why a verdict is not Held, for programs.
type Reason string

// The reasons.
const (
	TooMuch   Reason = "too-much"  // more got through than a held group can do
	Escaped   Reason = "escaped"   // much of it not charged to the group
	Slow      Reason = "slow"      // the disk, or the target, did not reach the limit
	Busy      Reason = "busy"      // no processor was to be had
	Others    Reason = "others"    // other groups' I/O on the device hides it
	Few       Reason = "few"       // too few operations
	Large     Reason = "large"     // requests too large for the window
	Cache     Reason = "cache"     // memory did it, and not the disk
	Unwritten Reason = "unwritten" // still in memory: nothing was written back meanwhile
	Uncharged Reason = "uncharged" // within the limit, but not in the group's name
	Uncounted Reason = "uncounted" // the disk's own counters stood still
	Hung      Reason = "hung"      // the load did not end
	Killed    Reason = "killed"    // the load was killed, by whom Why says
	Failed    Reason = "failed"    // the load could not be done
	NoPlace   Reason = "no-place"  // no directory to do it in
	Disturbed Reason = "disturbed" // the group was removed meanwhile
)

// What the throttle may let through, and what is close enough to the limit.
const (
	slice      = 100 * time.Millisecond
	saved      = 2 * slice // what a stalled writer catches up with; 5.10 to 7.2: up to 179 ms
	tolerance  = 0.10      // above the limit: held, if requests are small enough to tell
	ratioMax   = 1.25      // in the window, if it is no more than tolerance since the beginning
	saturation = 0.85      // below it: the load did not try hard enough to tell
	idle       = 0.05      // below it: the disk has as good as nothing done
	starvedMax = 0.05      // share of the window without a processor
	opsMin     = 5
)

// Evidence is what was measured of one row, in bytes or in operations.
type Evidence struct {
	Limit           float64 // per second
	Began, From, To time.Duration
	// Writer is what the load did, Cgroup what the kernel charged to the group, Device what the
	// disk did for all processes.
	Writer, Cgroup, Device Series
	Writes                 bool
	// Delayed says that a write is done before it reaches the disk: into the page cache.
	Delayed bool
	// Queued says that Cgroup includes what still waits in the throttle, as on v1
	// (block/blk-throttle.c, __blk_throtl_bio): what the disk did not do was not released.
	Queued bool
	// Alone says that nothing but the load is in the group, which then did no more than
	// the load has seen done: what it has under way at once waits for the throttle.
	Alone bool
	// Others is what the disk does per second beside the load.
	Others float64
	// Paced says that weir's pacer holds what the kernel charges to other groups: that it was
	// not charged to this one is no reason to doubt.
	Paced bool
	// Request is the size of the largest request that is usual, and Burst of the largest
	// that there can be: each waits for the throttle as a whole, and passes as a whole.
	Request, Burst float64
	// Waiting is what of a held group's I/O may still wait at the end of the window: not
	// more than one request.
	Waiting float64
	Ops     float64 // operations in the window, wherever most were counted
	Starved float64 // share of the window without a processor
	// Late is the longest time without a processor since the load began.
	Late   time.Duration
	Cached float64 // share of what was read that came from memory
}

// A Judgement is what the evidence comes to.
type Judgement struct {
	Verdict Verdict
	Reason  Reason // empty if held
	// Ratio is what the group did of the limit in the window; Within is the half width
	// of its 95 % confidence interval.
	Ratio, Within float64
	// Unlike is per second what the disk did beyond the group's own.
	Unlike float64
	// Done is what the group did within Over, the window or the whole run, and Most what a held
	// group can do in that time. If one of the two was exceeded, it is that one.
	Done, Most float64
	Over       time.Duration
}

// most is what a held group can do within a time.
func (e Evidence) most(within time.Duration) float64 {
	return e.Limit*(within+saved).Seconds() + e.Request
}

// charged is what was done in the group's name. A counter that runs ahead of the disk, by
// what waits for the throttle, is not believed before the disk has done as much, and the
// load if it is alone.
func (e Evidence) charged() Series {
	if !e.Queued {
		return e.Cgroup
	}
	var done Series
	for _, p := range e.Device {
		so := min(e.Cgroup.Between(e.Began, p.At), e.Device.Between(e.Began, p.At))
		if e.Alone {
			so = min(so, e.Writer.Between(e.Began, p.At))
		}
		done = done.add(p.At, so)
	}
	return done
}

// own returns what of a time's I/O on the device is the load's: what was charged to its
// group; and of what was not, as much as the writer has written and others have not.
func (e Evidence) own(from, to time.Duration) (own, escaped float64) {
	charged, device := e.charged().Between(from, to), e.Device.Between(from, to)
	rest := device - charged - e.Others*(to-from).Seconds()
	ahead := e.Writer.Between(e.Began, to) - e.Cgroup.Between(e.Began, to)
	if !e.Delayed {
		ahead = e.Writer.Between(from, to) - charged
		if ahead < e.Request+e.Limit*slice.Seconds() { // the samples are not of one moment
			ahead = 0
		}
	}
	escaped = max(0, min(rest, ahead))
	return charged + escaped, escaped
}

// intoMemory reports that writes were to be on the disk when they were done, and are
// not: a file system may do direct ones through the page cache.
func (e Evidence) intoMemory() bool {
	device := e.Device.Between(e.Began, e.To) + e.Limit*slice.Seconds() + e.Request
	return e.Writes && !e.Delayed && e.Writer.Between(e.Began, e.To) > 2*device
}

// uncounted reports that the group was charged for I/O that the load has seen done, and that
// the disk's own counters know nothing of it.
func (e Evidence) uncounted() bool {
	return !e.Delayed && e.Device.Between(e.Began, e.To) == 0 && e.Cgroup.Between(e.Began, e.To) > e.Request && e.Writer.Between(e.Began, e.To) > e.Request
}

// unwritten reports that the writer was faster than the limit, into memory, and the disk
// idle: a journal that takes the data too has them written at its next commit, and v1
// binds no writeback that could be waiting.
func (e Evidence) unwritten() bool {
	window := e.To - e.From
	done := e.Device.Between(e.From, e.To)
	return e.Writes && done < idle*e.Limit*window.Seconds() && done <= e.Request && e.Writer.Between(e.From, e.To) > e.most(window)
}

// hidden is how much of the others' I/O may still be the group's: what its writer dirtied and
// the kernel did not charge to it.
func (e Evidence) hidden() float64 {
	ahead := e.Writer.Between(e.Began, e.To) - e.Cgroup.Between(e.Began, e.To)
	if !e.Delayed {
		return 0
	}
	return min(ahead, e.Others*(e.To-e.From).Seconds())
}

// Judge compares the evidence with the limit. It never says NotHeld for what the throttle may
// let through, and never Held for a third above the limit. If the machine itself stood still
// for longer than a slice or two, what waited for the throttle continues as if the throttle had
// worked all the time (7.2: 40 MB at once after 3.8 s, under 10 MB/s).
func Judge(e Evidence) Judgement {
	window := e.To - e.From
	seconds := window.Seconds()
	own, escaped := e.own(e.From, e.To)
	total, escapedSince := e.own(e.Began, e.To)
	limit := e.Limit * seconds
	j := Judgement{Ratio: own / limit}
	judged := e.charged()
	if escaped > own/2 {
		judged = e.Device
	}
	j.Within = Confidence(judged, e.From, e.To) / e.Limit
	j.Unlike = max(0, e.Device.Between(e.From, e.To)-own) / seconds
	whole := total / (e.Limit * (e.To - e.Began + slice).Seconds())
	enough := saturation*limit - min(e.Waiting, 0.35*limit)
	j.Done, j.Most, j.Over = own, e.most(window), window
	if own <= j.Most && total > e.most(e.To-e.Began) {
		j.Done, j.Most, j.Over = total, e.most(e.To-e.Began), e.To-e.Began
	}
	say := func(v Verdict, r Reason) Judgement {
		j.Verdict, j.Reason = v, r
		return j
	}
	switch {
	case j.Done > j.Most:
		charged, uncharged := max(own-escaped, 0), max(escaped, escapedSince)
		return say(e.over(j, charged, uncharged, total))
	case own-escaped < enough && e.hidden() > e.most(window):
		return say(CannotTell, Others)
	case own < enough && e.uncounted():
		return say(CannotTell, Uncounted)
	case own < enough && (e.Cached > 0.5 || e.intoMemory()):
		return say(CannotTell, Cache)
	case own < enough && e.unwritten():
		return say(CannotTell, Unwritten)
	case own < enough && e.Starved > starvedMax:
		return say(CannotTell, Busy)
	case own < enough:
		return say(CannotTell, Slow)
	case escaped > own/2 && !e.Paced:
		return say(CannotTell, Uncharged)
	case j.Ratio > 1+tolerance && (whole > 1+tolerance || j.Ratio > ratioMax):
		return say(CannotTell, Large)
	case e.Ops < opsMin:
		return say(CannotTell, Few)
	case e.Writer.Between(e.From, e.To) > e.most(window):
		return say(HeldAtDevice, "")
	}
	return say(Held, "")
}

// over says why more was done than the throttle may let through. charged and uncharged are parts of
// what was done in the window, and total is all since the beginning.
func (e Evidence) over(j Judgement, charged, uncharged, total float64) (Verdict, Reason) {
	window := e.To - e.From
	switch {
	case charged <= e.most(window) && e.Others*window.Seconds() > uncharged/2:
		return CannotTell, Others
	case uncharged > total/2:
		return NotHeld, Escaped
	case e.Late > saved && j.Done <= j.Most+e.Limit*e.Late.Seconds():
		return CannotTell, Busy
	case j.Done <= j.Most-e.Request+e.Burst:
		return CannotTell, Large
	}
	return NotHeld, TooMuch
}

// String says it in words, for logs and tests.
func (j Judgement) String() string {
	return fmt.Sprintf("%s (%s) %.2f ±%.2f", j.Verdict, j.Reason, j.Ratio, j.Within)
}
