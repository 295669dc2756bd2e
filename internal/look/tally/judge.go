package tally

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
)

// A State is the result for a limit.
type State string

// The states.
const (
	Idle    State = "idle"     // nothing was done that the limit bounds
	Held    State = "held"     // what was done kept within it
	NotHeld State = "not_held" // more was done
	NotTold State = "not_told" // what was measured does not say
)

// A Verdict is the result for a limit on reads from a device, or on writes to it.
type Verdict struct {
	State   State
	Bytes   uint64        // charged to the group, and past the limit
	Took    time.Duration // in which that was done
	Burst   *Burst        // nil: nothing was more than the limit lets through
	Ops     uint64        // charged
	Escaped uint64        // of Bytes, those past the limit
	Doubts  []string      // why it is not told
}

// Rate is in bytes per second.
func (v Verdict) Rate() float64 { return float64(v.Bytes) / max(v.Took.Seconds(), 1e-6) }

// What the kernel's throttle lets through beyond its rate: a slice of 100 ms at the start, one
// more request, and rounding of its clock. It is granted in full, so that a short run is not
// judged wrongly.
const (
	throttleExcess = 1.05
	burst          = 150 * time.Millisecond
)

// within reports whether the throttle lets through so much in that time, by requests that have up
// to so many bytes.
func (b bounds) within(bytes, ops uint64, took time.Duration, request uint64) bool {
	pays := throttleExcess*took.Seconds() + burst.Seconds()
	if n, bounded := b.bytes.Number(); bounded && float64(bytes) > float64(n)*pays+float64(max(requestMost, request)) {
		return false
	}
	n, bounded := b.ops.Number()
	return !bounded || float64(ops) <= float64(n)*pays+1
}

// withdraw takes a verdict back if the counters could not be read all the time, or the limit was
// another one for a part of it.
func (s Sum) withdraw(v Verdict, changed bool) Verdict {
	if changed && v.State != Idle {
		v.State, v.Doubts = NotTold, []string{"the limit was changed while the command ran"}
	}
	if s.Missed != nil && v.State != NotHeld {
		v.State, v.Doubts = NotTold, []string{fmt.Sprintf("the counters could not be read (%v)", s.Missed)}
	}
	return v
}

// Reads judges the limits on reads from a device. The kernel charges all of them. What of them
// waits in the throttle cannot be seen, so time in which nothing was read counts too.
func (s Sum) Reads(d Device) Verdict { return s.withdraw(d.reads(), d.rereads) }

func (d Device) reads() Verdict {
	v := Verdict{Bytes: d.Charged.ReadBytes, Ops: d.Charged.Reads, Took: d.Reading.Duration(), State: Held}
	switch {
	case v.Ops == 0:
		v.State = Idle
	case !(bounds{d.Limit.RBPS, d.Limit.RIOPS}).within(v.Bytes, v.Ops, v.Took, requestMost):
		v.State = NotHeld
	}
	return v
}

// Writes judges the limits on writes to a device.
func (s Sum) Writes(d Device) Verdict {
	v := s.writes(d)
	if s.strayed > 0 && v.State != NotHeld {
		v.State = NotTold
		v.Doubts = append(v.Doubts, fmt.Sprintf("processes left the command's group, and weir did not see where %s went that they wrote", limit.FormatMeasured(float64(s.strayed))))
	}
	return s.withdraw(v, d.rewrites)
}

func (s Sum) writes(d Device) Verdict {
	v := Verdict{Ops: d.Charged.Writes, Escaped: d.Escaped, State: Held}
	if !s.Told && s.Escaped > slack() {
		v.Escaped = s.Escaped
	}
	v.Bytes = d.Charged.WrittenBytes + v.Escaped
	c := d.Writing
	if len(c.done) == 0 {
		c.Span, c.paused = c.with(s.Writing), s.Paused
	}
	spare := s.spare
	if !s.Told { // it may be that much too high
		spare += slack()
	}
	var blurred bool
	v.Took, v.Burst, blurred = c.judge(bounds{d.Limit.WBPS, d.Limit.WIOPS}, amount{d.Charged.WrittenBytes, v.Ops, s.Written, v.Escaped, s.estimated}, s.Ended, s.Queued, spare)
	_, bytes := d.Limit.WBPS.Number()
	switch {
	case v.Bytes == 0 && (s.Dirty == 0 || s.Written == 0):
		v.State = Idle
		return v
	case v.Burst != nil:
		v.State = NotHeld
	case !bytes && v.Escaped > slack(): // how many operations that took is not known
		v.State, v.Doubts = NotTold, []string{"weir does not know how many operations went past the limit"}
	case v.Bytes == 0: // the limit was not tried
		v.State, v.Doubts = NotTold, []string{fmt.Sprintf("%s is still in memory, and nothing has reached the disk yet", limit.FormatMeasured(float64(s.Dirty)))}
	case blurred:
		v.State, v.Doubts = NotTold, []string{"weir could not count often enough what went past the limit, and does not know how much was written at once"}
	}
	if !s.Told {
		v.doubt(s, d)
	}
	if v.State == NotHeld && v.Escaped > 0 && s.Unsure != "" {
		v.State, v.Doubts = NotTold, []string{s.Unsure}
	}
	return v
}

// writeLimits is how many devices have a limit on writes.
func (s Sum) writeLimits() (n int) {
	for _, d := range s.Devices {
		if (bounds{d.Limit.WBPS, d.Limit.WIOPS}).some() {
			n++
		}
	}
	return n
}

// doubt withdraws a verdict that may be due to an Estimate's error.
func (v *Verdict) doubt(s Sum, d Device) {
	var doubts []string
	if v.Escaped > 0 {
		for _, f := range s.Open {
			if !f.On(d.Device) {
				doubts = append(doubts, f.Path+" was open for writing and is not on the limited device")
				break
			}
		}
		if i := slices.IndexFunc(s.Open, func(f Opened) bool { return f.compressed }); i >= 0 {
			doubts = append(doubts, s.Open[i].Path+" may be compressed, so that less was written to the disk than by the command")
		}
		if s.writeLimits() > 1 {
			doubts = append(doubts, "without BPF weir cannot tell the disks apart")
		}
	}
	if v.State == Held && s.Dirty > slack() {
		for _, f := range s.Open {
			if f.On(d.Device) && !f.New {
				doubts = append(doubts, fmt.Sprintf("%s existed before, and without BPF weir cannot see which group the kernel charges it to", f.Path))
				break
			}
		}
		if len(s.Open) == 0 {
			doubts = append(doubts, "data is still in memory, and weir saw no file of it open, so it does not know which group the kernel charges it to")
		}
	}
	if len(doubts) > 0 && (v.State == NotHeld && v.Escaped > 0 || v.State == Held) {
		v.State, v.Doubts = NotTold, doubts
	}
}
