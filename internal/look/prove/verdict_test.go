package prove

import (
	"math/rand/v2"
	"testing"
	"time"
)

const (
	mb     = 1e6
	runFor = 3300 * ms // a run of 3 s and 0.3 s of warm-up
)

// even is a row in which all three places see the same.
func even(s Series) Evidence {
	return Evidence{Limit: 10 * mb, Began: 0, From: 300 * ms, To: runFor, Writer: s, Cgroup: s, Device: s, Request: 64 << 10, Ops: 450}
}

func with(e Evidence, change func(*Evidence)) Evidence {
	change(&e)
	return e
}

func TestJudge(t *testing.T) {
	exact := line(10*mb, runFor)
	none := line(0, runFor)
	fast := line(400*mb, runFor)
	bimodal := steps(runFor, func(at time.Duration) float64 { // 5 and 15 MB/s, in turns of 0.2 s
		whole := at / (400 * ms)
		return mb * (float64(whole)*4 + 5*min(at-whole*400*ms, 200*ms).Seconds() + 15*max(0, at-whole*400*ms-200*ms).Seconds())
	})
	inLumps := steps(runFor, func(at time.Duration) float64 { // 20 MB at once, twice a run
		if at == 0 {
			return 0
		}
		return 20 * mb * float64(min(at/(1500*ms)+1, 2))
	})
	for name, c := range map[string]struct {
		e    Evidence
		want Verdict
		why  Reason
	}{
		"exact":                          {even(exact), Held, ""},
		"three times":                    {even(line(30*mb, runFor)), NotHeld, TooMuch},
		"half":                           {even(line(5*mb, runFor)), CannotTell, Slow},
		"a bit less":                     {even(line(9*mb, runFor)), Held, ""},
		"a bit more":                     {even(line(10.2*mb, runFor)), Held, ""},
		"bimodal":                        {even(bimodal), Held, ""},
		"nothing at all":                 {even(none), CannotTell, Slow},
		"half, and busy":                 {with(even(line(5*mb, runFor)), func(e *Evidence) { e.Starved = 0.3 }), CannotTell, Busy},
		"exact, and busy":                {with(even(exact), func(e *Evidence) { e.Starved = 0.3 }), Held, ""},
		"all from memory":                {with(even(none), func(e *Evidence) { e.Writer, e.Cached = fast, 1 }), CannotTell, Cache},
		"direct, in memory":              {with(even(none), func(e *Evidence) { e.Writes, e.Writer = true, fast }), CannotTell, Cache},
		"v1, a disk that counts nothing": {with(even(exact), func(e *Evidence) { e.Writes, e.Queued, e.Alone, e.Device = true, true, true, none }), CannotTell, Uncounted},
		"v2, a disk that counts nothing": {with(even(exact), func(e *Evidence) { e.Writes, e.Device = true, none }), Held, ""},
		"three requests":                 {with(even(exact), func(e *Evidence) { e.Ops = 3 }), CannotTell, Few},
		"1.3, large":                     {with(even(line(13*mb, runFor)), func(e *Evidence) { e.Request = 16 << 20 }), CannotTell, Large},
		"one large request of writeback": {with(even(steps(runFor, func(at time.Duration) float64 {
			return 40 * mb * float64(min(at/(1500*ms), 1))
		})), func(e *Evidence) { e.Delayed, e.Writer, e.Burst = true, fast, 40*mb }), CannotTell, Large},
		"three times, and large requests of writeback": {with(even(line(30*mb, runFor)), func(e *Evidence) { e.Delayed, e.Writer, e.Burst = true, fast, 32<<20 }), NotHeld, TooMuch},
		"1.3, small":      {even(line(13*mb, runFor)), NotHeld, TooMuch},
		"v1, buffered":    {with(even(none), func(e *Evidence) { e.Delayed, e.Writer, e.Device = true, fast, line(200*mb, runFor) }), NotHeld, Escaped},
		"v1, a slow disk": {with(even(none), func(e *Evidence) { e.Delayed, e.Writer, e.Device = true, fast, line(9*mb, runFor) }), CannotTell, Uncharged},
		"v1, busy disk": {with(even(none), func(e *Evidence) {
			e.Delayed, e.Writer, e.Device, e.Others = true, fast, line(200*mb, runFor), 150*mb
		}), CannotTell, Others},
		"v1, not written yet":  {with(even(none), func(e *Evidence) { e.Writes, e.Delayed, e.Writer, e.Device = true, true, fast, none }), CannotTell, Unwritten},
		"v1, a very slow disk": {with(even(none), func(e *Evidence) { e.Writes, e.Delayed, e.Writer, e.Device = true, true, fast, line(2*mb, runFor) }), CannotTell, Slow},
		"v2, buffered":         {with(even(exact), func(e *Evidence) { e.Delayed, e.Writer = true, fast }), HeldAtDevice, ""},
		"v2, another's inode": {with(even(none), func(e *Evidence) {
			e.Delayed, e.Writer, e.Device, e.Others = true, fast, line(200*mb, runFor), 200*mb
		}), CannotTell, Others},
		"v2, another's, sampled": {with(even(none), func(e *Evidence) {
			e.Delayed, e.Writer, e.Device, e.Others = true, fast, line(209*mb, runFor), 200*mb
		}), CannotTell, Others},
		"v2, at once":     {with(even(exact), func(e *Evidence) { e.Delayed = true }), Held, ""},
		"a neighbour":     {with(even(exact), func(e *Evidence) { e.Device = line(80*mb, runFor) }), Held, ""},
		"a journal":       {with(even(exact), func(e *Evidence) { e.Device = line(16*mb, runFor) }), Held, ""},
		"direct, escaped": {with(even(none), func(e *Evidence) { e.Writer, e.Device = line(80*mb, runFor), line(80*mb, runFor) }), NotHeld, Escaped},
		"v1, 32 at once":  {with(even(exact), func(e *Evidence) { e.Queued, e.Cgroup = true, ahead(2*mb, exact) }), Held, ""},
		"v1, 32 beside a reader": {with(even(exact), func(e *Evidence) {
			e.Queued, e.Alone, e.Cgroup, e.Device = true, true, ahead(8*mb, exact), line(80*mb, runFor)
		}), Held, ""},
		"v1, 32 beside a reader, and not held": {with(even(line(20*mb, runFor)), func(e *Evidence) {
			e.Queued, e.Alone, e.Cgroup, e.Device = true, true, ahead(8*mb, line(20*mb, runFor)), line(80*mb, runFor)
		}), NotHeld, TooMuch},
		"half, in small requests":       {with(even(line(5.5*mb, runFor)), func(e *Evidence) { e.Request, e.Waiting = 4<<20, 0 }), CannotTell, Slow},
		"v1, a large readahead":         {with(even(exact), func(e *Evidence) { e.Queued, e.Cgroup = true, inLumps }), Held, ""},
		"v1, a long fsync":              {with(even(exact), func(e *Evidence) { e.Queued, e.Delayed, e.Cgroup = true, true, ahead(1000*mb, exact) }), Held, ""},
		"v2, ahead":                     {with(even(exact), func(e *Evidence) { e.Cgroup = ahead(20*mb, exact) }), NotHeld, TooMuch},
		"a burst at first":              {even(steps(runFor, func(at time.Duration) float64 { return 10*mb*at.Seconds() + min(at.Seconds()*200*mb, 20*mb) })), NotHeld, TooMuch},
		"after a stall":                 {even(steps(runFor, func(at time.Duration) float64 { return 10*mb*at.Seconds() + min(at.Seconds()*18*mb, 1.8*mb) })), Held, ""},
		"after the machine stood still": {with(even(steps(runFor, func(at time.Duration) float64 { return 10*mb*at.Seconds() + min(at.Seconds()*300*mb, 10*mb) })), func(e *Evidence) { e.Late = time.Second }), CannotTell, Busy},
		"busy, and twice too much":      {with(even(line(20*mb, runFor)), func(e *Evidence) { e.Late = 500 * ms }), NotHeld, TooMuch},
		"busy, and escaped": {with(even(none), func(e *Evidence) {
			e.Delayed, e.Writer, e.Device, e.Late = true, fast, line(15*mb, runFor), 2*time.Second
		}), NotHeld, Escaped},
		"escaped, and weir's pacer holds it": {with(even(none), func(e *Evidence) {
			e.Writes, e.Delayed, e.Paced, e.Writer, e.Device = true, true, true, line(10*mb, runFor), line(10*mb, runFor)
		}), Held, ""},
		"escaped, and nobody holds it": {with(even(none), func(e *Evidence) {
			e.Writes, e.Delayed, e.Writer, e.Device = true, true, line(10*mb, runFor), line(10*mb, runFor)
		}), CannotTell, Uncharged},
		"escaped, and past weir's pacer": {with(even(none), func(e *Evidence) {
			e.Writes, e.Delayed, e.Paced, e.Writer, e.Device = true, true, true, line(20*mb, runFor), line(20*mb, runFor)
		}), NotHeld, Escaped},
		"a very slow disk": {with(even(line(0.3*mb, runFor)), func(e *Evidence) { e.Writes, e.Delayed, e.Writer, e.Request = true, true, fast, 0.1*mb }), CannotTell, Slow},
		"a slice at first": {even(steps(runFor, func(at time.Duration) float64 { return 10*mb*at.Seconds() + min(at.Seconds()*10*mb, mb) })), Held, ""},
	} {
		if j := Judge(c.e); j.Verdict != c.want || j.Reason != c.why {
			t.Errorf("%s: %s, want %s (%s)", name, j, c.want, c.why)
		}
	}
}

// ahead is a counter that takes more in its first step.
func ahead(by float64, s Series) Series {
	var moved Series
	for i, p := range s {
		if i > 0 {
			p.Total += by
		}
		moved = append(moved, p)
	}
	return moved
}

// throttled is a counter as a group's is that keeps within the bound: slices of at
// most 200 ms of budget ahead, and requests that pass whole when their time is over.
func throttled(rate, request float64, until time.Duration) Series {
	done, wanted := 0.0, 0.0
	next := request * rand.Float64()
	return steps(until, func(at time.Duration) float64 {
		budget := rate * (at + saved).Seconds()
		for ; wanted+next <= budget; next = request * (0.2 + 0.8*rand.Float64()) {
			wanted += next
			done = wanted
		}
		return done
	})
}

// What the bound allows is never called not held, and a third too much never held.
func TestJudgeIsNeverWrong(t *testing.T) {
	for range 20000 {
		rate := 1e5 * (1 + 1000*rand.Float64())
		window := time.Duration(1+rand.IntN(10)) * time.Second
		began := time.Duration(rand.IntN(300)) * ms
		e := Evidence{Limit: rate, Began: 0, From: 300*ms + began, To: 300*ms + began + window, Ops: 1000, Delayed: rand.IntN(2) == 0}
		e.Request = rate * window.Seconds() * rand.Float64() * rand.Float64()
		e.Cgroup = throttled(rate, e.Request, e.To)
		e.Device, e.Writer = e.Cgroup, e.Cgroup
		if e.Delayed {
			e.Writer = line(50*rate, e.To)
		}
		if j := Judge(e); j.Verdict == NotHeld {
			t.Fatalf("within the bound: %s (rate %.0f, request %.0f, window %s)", j, rate, e.Request, window)
		}
		e.Cgroup = throttled(rate*(1.3+rand.Float64()), e.Request, e.To)
		if rand.IntN(2) == 0 {
			e.Cgroup = line(rate*(1.3+rand.Float64()), e.To)
		}
		e.Device = e.Cgroup
		if j := Judge(e); (j.Verdict == Held || j.Verdict == HeldAtDevice) && j.Ratio >= 1.3 {
			t.Fatalf("a third too much: %s (rate %.0f, request %.0f, window %s)", j, rate, e.Request, window)
		}
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		all  []Verdict
		want Verdict
	}{
		{nil, CannotTell},
		{[]Verdict{Held}, Held},
		{[]Verdict{Held, HeldAtDevice}, HeldAtDevice},
		{[]Verdict{CannotTell, Held}, CannotTell},
		{[]Verdict{Held, CannotTell}, CannotTell},
		{[]Verdict{HeldAtDevice, CannotTell}, CannotTell},
		{[]Verdict{NotHeld, CannotTell}, NotHeld},
		{[]Verdict{CannotTell, NotHeld, Held}, NotHeld},
	} {
		if got := Worst(c.all); got != c.want {
			t.Errorf("Worst(%v) = %s, want %s", c.all, got, c.want)
		}
	}
}
