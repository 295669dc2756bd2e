package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/lab"
)

// Reasons for limits that are only expected not to hold are looked for rarely, however many there are, and
// keep nobody from learning why a limit was not held.
func TestExpectedIsExplainedRarely(t *testing.T) {
	lab.Unit(t)
	synctest.Test(t, func(t *testing.T) {
		m := newMeasurer(Options{Open: func() (*host.Host, error) { return nil, errors.New("closed") }}, func() []reconcile.Status { return nil }, nil)
		var all []held.Target
		for i := range 3 * expectedBurst {
			key := fmt.Sprint("docker:", i)
			m.verdicts[key] = Held{Verdict: held.Verdict{Limits: []held.Limit{{Unheld: true, State: held.NotTold}}}}
			all = append(all, held.Target{Key: key})
		}
		answered := func() (n int) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, q := range m.asked {
				if q.answer != (Finding{}) {
					n++
				}
			}
			return n
		}
		ask := func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.question(all)
		}
		ask()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { m.explain(ctx); close(ended) }()
		time.Sleep((expectedBurst + 2) * explainEvery)
		if n := answered(); n != expectedBurst {
			t.Errorf("%d were explained at once, want %d", n, expectedBurst)
		}
		m.mu.Lock()
		m.verdicts["docker:not"] = Held{Verdict: held.Verdict{State: held.NotHeld, Limits: []held.Limit{{State: held.NotHeld}}}}
		m.mu.Unlock()
		all = append(all, held.Target{Key: "docker:not"})
		ask()
		time.Sleep(explainEvery)
		m.mu.Lock()
		if m.asked["docker:not"].answer == (Finding{}) {
			t.Error("a limit that was not held is not explained")
		}
		m.mu.Unlock()
		time.Sleep(4 * expectedEvery)
		if n := answered(); n != expectedBurst+5 {
			t.Errorf("%d were explained two minutes later, want %d", n, expectedBurst+5)
		}
		stop()
		<-ended
	})
}

// Where a search takes long, as on a host with thousands of groups, reasons that are only expected are looked for so
// rarely that they take a two-thousandth of the time.
func TestASlowSearchIsRare(t *testing.T) {
	lab.Unit(t)
	synctest.Test(t, func(t *testing.T) {
		var searched []time.Time
		m := newMeasurer(Options{Open: func() (*host.Host, error) {
			searched = append(searched, time.Now())
			time.Sleep(100 * time.Millisecond)
			return nil, errors.New("closed")
		}}, func() []reconcile.Status { return nil }, nil)
		var all []held.Target
		for i := range 3 * expectedBurst {
			key := fmt.Sprint("docker:", i)
			m.verdicts[key] = Held{Verdict: held.Verdict{Limits: []held.Limit{{Unheld: true, State: held.NotTold}}}}
			all = append(all, held.Target{Key: key})
		}
		m.question(all)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { m.explain(ctx); close(ended) }()
		time.Sleep(time.Hour)
		stop()
		<-ended
		const pause = 200 * time.Second
		for i, at := range searched[expectedBurst:] {
			if since := at.Sub(searched[expectedBurst+i-1]); since < pause || since > pause+time.Second {
				t.Errorf("search %d came after %v, want %v", expectedBurst+i, since, pause)
			}
		}
		if n := len(searched); n < expectedBurst+16 {
			t.Errorf("%d searches in an hour", n)
		}
	})
}

// Targets that have gone before anybody looked why their limits are not expected to hold take no turn of
// those that are there.
func TestGoneTargetsTakeNoTurn(t *testing.T) {
	lab.Unit(t)
	synctest.Test(t, func(t *testing.T) {
		m := newMeasurer(Options{Open: func() (*host.Host, error) { return nil, errors.New("closed") }}, func() []reconcile.Status { return nil }, nil)
		ask := func(names string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.verdicts = map[string]Held{}
			var all []held.Target
			for i := range expectedBurst {
				key := fmt.Sprint(names, i)
				m.verdicts[key] = Held{Verdict: held.Verdict{Limits: []held.Limit{{Unheld: true, State: held.NotTold}}}}
				all = append(all, held.Target{Key: key})
			}
			m.question(all)
		}
		ask("gone")
		ask("there")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { m.explain(ctx); close(ended) }()
		time.Sleep((expectedBurst + 1) * explainEvery)
		m.mu.Lock()
		for key, q := range m.asked {
			if q.answer == (Finding{}) {
				t.Errorf("%s is not explained", key)
			}
		}
		if len(m.asked) != expectedBurst {
			t.Errorf("%d are asked about", len(m.asked))
		}
		m.mu.Unlock()
		stop()
		<-ended
	})
}

func TestRestAfter(t *testing.T) {
	lab.Unit(t)
	for quiet, want := range map[int]time.Duration{0: restEvery, 1: restEvery, 2: 2 * restEvery, 3: 4 * restEvery, 4: 8 * restEvery, 5: stillEvery, 6: stillEvery, 1 << 40: stillEvery} {
		if got := restAfter(quiet); got != want {
			t.Errorf("after %d readings: %v, want %v", quiet, got, want)
		}
	}
}

// A group that has just come is read again soon, however quiet the others were: what it did before its
// first reading is in no rate.
func TestPace(t *testing.T) {
	lab.Unit(t)
	const long = 13
	limited := limit.None.With(limit.WBPS, limit.PerSecond(1e6))
	was := cgroupfs.Stat{WrittenBytes: 1 << 20, Writes: 1}
	for name, c := range map[string]struct {
		device watch.Device
		busy   bool
		wait   time.Duration
		quiet  int
	}{
		"at rest":        {watch.Device{Limit: limited, Counted: true, Total: was, Rates: &watch.Rates{}}, false, stillEvery, long + 1},
		"nothing done":   {watch.Device{Limit: limited}, false, stillEvery, long + 1},
		"no limit":       {watch.Device{Counted: true, Total: was, Rates: &watch.Rates{WBPS: 1}}, false, stillEvery, long + 1},
		"moves":          {watch.Device{Limit: limited, Counted: true, Total: was, Rates: &watch.Rates{WBPS: 1}}, false, restEvery, 0},
		"first reading":  {watch.Device{Limit: limited, Counted: true, Total: was}, false, restEvery, long},
		"near its limit": {watch.Device{Limit: limited, Counted: true, Total: was, Rates: &watch.Rates{WBPS: 1e6}}, true, busyEvery, 0},
	} {
		s := &watch.Snapshot{Groups: []*watch.Group{{Path: "/a", Devices: []watch.Device{c.device}}}}
		if wait, quiet := pace(s, c.busy, long); wait != c.wait || quiet != c.quiet {
			t.Errorf("%s: %v and %d, want %v and %d", name, wait, quiet, c.wait, c.quiet)
		}
	}
}
