package lab

import (
	"testing"
	"time"
)

// A Band is how far from its limit a measured rate may be, as a ratio.
type Band struct{ Low, High float64 }

// Direct is the band of direct I/O, which only the throttle paces: 3 %.
var Direct = Band{0.97, 1.03}

// Written is the band of what reaches a device through the page cache: 5 %.
var Written = Band{0.95, 1.05}

const (
	// attempts bounds how often a disturbed measurement is made again.
	attempts = 5
	// starvedMax is the share of a measurement that a process may have waited for a
	// processor: beyond it, what was measured is the machine and not the limit.
	starvedMax = 0.015
	// tick is how long the canary sleeps, and slack what a timer may be late.
	tick  = 2 * time.Millisecond
	slack = 2 * time.Millisecond
)

// Ratio measures a rate against a limit and fails the test if the ratio is outside
// the band. A measurement counts if the machine was quiet: a canary sleeps
// meanwhile, again and again, and its lateness tells for how long no processor was
// to be had. One that was disturbed and is outside the band is made again.
func Ratio(t testing.TB, what string, limit float64, band Band, measure func() float64) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		stop := canary()
		ratio := measure() / limit
		starved := stop()
		t.Logf("%s: %.3f of %.0f (starved %.1f %%)", what, ratio, limit, 100*starved)
		switch {
		case ratio >= band.Low && ratio <= band.High:
			return
		case starved <= starvedMax:
			t.Errorf("%s: %.3f of the limit, want %.2f to %.2f", what, ratio, band.Low, band.High)
			return
		case attempt == attempts:
			t.Errorf("%s: %.3f of the limit, want %.2f to %.2f; the machine was too busy %d times to tell", what, ratio, band.Low, band.High, attempts)
			return
		}
	}
}

// canary starts to watch for a starved processor; stop returns the share of the time
// for which there was none.
func canary() (stop func() float64) {
	quit := make(chan struct{})
	late := make(chan time.Duration)
	began := time.Now()
	go func() {
		var total time.Duration
		for {
			slept := time.Now()
			select {
			case <-quit:
				late <- total
				return
			case <-time.After(tick):
			}
			if over := time.Since(slept) - tick - slack; over > 0 {
				total += over + slack
			}
		}
	}()
	return func() float64 {
		close(quit)
		return (<-late).Seconds() / time.Since(began).Seconds()
	}
}
