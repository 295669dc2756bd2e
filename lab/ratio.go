package lab

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-io/weir/lab/environ"
)

// A Band is how far from its limit a measured rate may be, as a ratio.
type Band struct{ Low, High float64 }

// Direct is the band of direct I/O, which only the throttle paces: 3 %.
var Direct = Band{0.97, 1.03}

// Written is the band of what reaches a device through the page cache: 5 %.
var Written = Band{0.95, 1.05}

// Scaled returns a rate that a lane's processor can do with ease: an emulated one
// does a quarter. What a limit's test then finds is the limit's doing.
func Scaled(e environ.Environ, rate int) int {
	if e.Lane == "qemu" {
		return rate / 4
	}
	return rate
}

const (
	// attempts bounds how often a disturbed measurement is made again.
	attempts = 5
	// starvedMax is the share of a measurement that a process may have waited for a
	// processor: beyond it, what was measured is the machine and not the limit.
	starvedMax = 0.005
	// tick is how long the canary sleeps, rarely enough to be no load itself where a
	// processor is emulated; slack is what a timer may be late without any.
	tick  = 20 * time.Millisecond
	slack = 3 * time.Millisecond
)

// CatchUp is how much of a limit a stalled writer or reader can get at once when it goes
// on: the throttle keeps what was not used of its slices, of 100 ms each. Measured on 6.1,
// 6.12 and 7.2: up to 179 ms (TestAStallIsNotSaved).
const CatchUp = 200 * time.Millisecond

// Ratio measures a rate against a limit and fails the test if the ratio is outside
// the band. What was outside counts if the machine was quiet: a canary sleeps meanwhile,
// again and again, and its lateness tells for how long no processor was to be had. What
// was disturbed is measured again, when the machine is quieter. Too much fails at once
// all the same, unless a stall can have made it: of the writer, which lets through no more
// than CatchUp; or of the machine, where what waits for the throttle goes on as if the
// throttle had looked all the time (7.2, in a full guest beside others: 40 MB at once after
// 3.8 s of nothing, under 10 MB/s). For how much of the time
// the busiest disk had something to do is logged, and does not count.
func Ratio(t testing.TB, what string, limit float64, band Band, measure func() float64) {
	t.Helper()
	ratio(t, what, limit, band, func() (m measured) {
		began, before := time.Now(), diskTimes(t)
		m.starved = theCanary.share(func() { m.rate = measure() })
		m.took, m.stalled = time.Since(began), theCanary.longest(began)
		for disk, busy := range diskTimes(t) {
			m.busy = max(m.busy, (busy-before[disk]).Seconds()/m.took.Seconds())
		}
		return m
	}, theCanary.awaitQuiet)
}

// A measured rate, and how the machine was meanwhile: the share of the time for which no
// processor was to be had, for how long there was none on end, and the share for which the
// busiest disk had something to do.
type measured struct {
	rate, starved float64
	took, stalled time.Duration
	busy          float64
}

// ratio judges what measure returns. Before that is called again, quieter is.
func ratio(t testing.TB, what string, limit float64, band Band, measure func() measured, quieter func()) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		m := measure()
		ratio := m.rate / limit
		t.Logf("%s: %.3f of %.0f (starved %.1f %%, a disk busy %.0f %%)", what, ratio, limit, 100*m.starved, 100*m.busy)
		stall := CatchUp
		if m.stalled > CatchUp {
			stall += 2 * m.stalled // twice: the rate may be that of half of the time
		}
		switch {
		case ratio >= band.Low && ratio <= band.High:
			return
		case ratio > band.High+stall.Seconds()/m.took.Seconds() || m.starved <= starvedMax:
			Measures(t)
			t.Errorf("%s: %.3f of the limit, want %.2f to %.2f", what, ratio, band.Low, band.High)
			return
		case attempt == attempts:
			Measures(t)
			t.Errorf("%s: %.3f of the limit, want %.2f to %.2f; the machine was too busy %d times to tell", what, ratio, band.Low, band.High, attempts)
			return
		}
		quieter()
	}
}

// Free measures a rate, and fails the test if it is below what shows that no limit binds.
// A busy machine can make it too low and never too high: what is too low is measured again.
func Free(t testing.TB, what string, least float64, measure func() float64) {
	t.Helper()
	free(t, what, least, measure, theCanary.awaitQuiet)
}

func free(t testing.TB, what string, least float64, measure func() float64, quieter func()) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		rate := measure()
		t.Logf("%s: %.0f, to be at least %.0f", what, rate, least)
		if rate >= least {
			return
		}
		if attempt == attempts {
			Measures(t)
			t.Errorf("%s: %.0f bytes/s, want at least %.0f", what, rate, least)
			return
		}
		quieter()
	}
}

// theCanary is one for all measurements of a test binary, which run side by side.
var theCanary canary

// A canary adds up for how long no processor was to be had.
type canary struct {
	start sync.Once
	late  atomic.Int64 // nanoseconds

	mutex  sync.Mutex
	stalls []stall
}

// A stall is a time without a processor that was longer than what the throttle saves.
type stall struct {
	end    time.Time
	lasted time.Duration
}

// longest returns the longest stall that has ended since a moment; 0 if there was none.
func (c *canary) longest(since time.Time) (most time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, s := range c.stalls {
		if s.end.After(since) {
			most = max(most, min(s.lasted, s.end.Sub(since)))
		}
	}
	return most
}

// lateness returns the sum since the first call, which starts the canary.
func (c *canary) lateness() time.Duration {
	c.start.Do(func() { go c.sing() })
	return time.Duration(c.late.Load())
}

// share tells for which share of the time that something takes no processor was to be had.
func (c *canary) share(of func()) float64 {
	before, began := c.lateness(), time.Now()
	of()
	return (c.lateness() - before).Seconds() / time.Since(began).Seconds()
}

const (
	quietShare = 0.2
	quietMost  = 30 * time.Second
)

// AwaitQuiet waits until a processor is to be had for most of a second, or gives up: before
// something is measured again that the machine was too busy for.
func AwaitQuiet(t testing.TB) {
	t.Helper()
	theCanary.awaitQuiet()
}

// awaitQuiet waits for a second with a processor for most of it.
func (c *canary) awaitQuiet() {
	for began := time.Now(); time.Since(began) < quietMost; {
		if c.share(func() { time.Sleep(time.Second) }) < quietShare {
			return
		}
	}
}

// sing ends with the test binary.
func (c *canary) sing() {
	for {
		slept := time.Now()
		time.Sleep(tick)
		if over := time.Since(slept) - tick; over > slack {
			c.late.Add(int64(over))
			if over > CatchUp {
				c.mutex.Lock()
				c.stalls = append(c.stalls, stall{time.Now(), over})
				c.mutex.Unlock()
			}
		}
	}
}
