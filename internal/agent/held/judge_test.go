package held

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/lab"
)

var sda = blkdev.Number{Major: 8}

const ten = 10_000_000

// A world is one group that writes, with a clock.
type world struct {
	t     *testing.T
	j     *Judge
	now   time.Time
	group watch.Group
	all   []Target
	busy  bool
}

func begin(t *testing.T, l limit.Limit, e *place.Expected) *world {
	lab.Unit(t)
	w := &world{t: t, j: NewJudge(), now: time.Unix(1e9, 0), all: []Target{{Key: "docker:1", Group: "/a"}},
		group: watch.Group{Path: "/a", Devices: []watch.Device{{Number: sda, Node: "/dev/sda", Counted: true, Limit: limit.None.Overlay(l), Expected: e}}}}
	w.look(0, 0)
	return w
}

// look has the group write so much in a time.
func (w *world) look(wbps float64, in time.Duration) Verdict {
	w.t.Helper()
	w.now = w.now.Add(in)
	d := w.group.Devices[0]
	d.Total.WrittenBytes += uint64(wbps * in.Seconds())
	d.Total.Writes += uint64(wbps * in.Seconds() / 4096)
	w.group.Devices = []watch.Device{d}
	g := w.group
	w.busy = w.j.Look(&watch.Snapshot{At: w.now, Groups: []*watch.Group{&g}}, w.all)
	return w.j.Of("docker:1")
}

func (w *world) times(n int, wbps float64) (v Verdict) {
	for range n {
		v = w.look(wbps, 2*time.Second)
	}
	return v
}

func write(perSec uint64) limit.Limit { return limit.Limit{}.With(limit.WBPS, limit.PerSecond(perSec)) }

// kernel is what v2 holds: all that the group writes is charged to it.
func kernel() *place.Expected {
	by := place.By{Mechanism: place.Throttle}
	return &place.Expected{Expectation: place.Expectation{Direct: by, Sync: by, Mapped: by, Read: by, Buffered: place.By{Mechanism: place.Writeback}}}
}

// Only a target that is at its limit for long enough is told of: that it is held, and since when, over
// what, and how fast it was.
func TestHeld(t *testing.T) {
	w := begin(t, write(ten), kernel())
	start := w.now
	if v := w.times(2, ten*0.99); v.State != NotTold || !w.busy || !v.Since.IsZero() {
		t.Errorf("after 4 s: %+v", v)
	}
	v := w.times(1, ten*0.99)
	l := v.Limits[0]
	if v.State != Held || !v.Since.Equal(start) || !l.From.Equal(start) || !l.To.Equal(w.now) || l.Rate < 0.98*ten || l.Rate > ten || l.Why != "" || l.Node != "/dev/sda" {
		t.Errorf("%+v", v)
	}
	measured := l.To
	v = w.times(50, 0) // it rests, and what was measured stays
	if l := v.Limits[0]; v.State != Held || !v.Since.Equal(start) || !l.To.Equal(measured) || w.busy {
		t.Errorf("%+v", v)
	}
	// A new measurement takes nothing from the time between, and does not begin anew.
	if v = w.times(3, ten); v.State != Held || !v.Since.Equal(start) || v.Limits[0].To.Sub(v.Limits[0].From) != 6*time.Second {
		t.Errorf("%+v", v)
	}
	for range 100 {
		v = w.look(ten, 2*time.Second)
		if over := v.Limits[0].To.Sub(v.Limits[0].From); over > windowMost || over < WindowLeast {
			t.Fatalf("measured over %v", over)
		}
	}
}

// Below its limit, in bursts, with gaps, or with another rule meanwhile, nothing is told.
func TestNotTold(t *testing.T) {
	w := begin(t, write(ten), kernel())
	if v := w.times(50, ten*0.85); v.State != NotTold || !w.busy || !strings.Contains(v.Limits[0].Why, "not at its limit") {
		t.Errorf("below: %+v", v)
	}
	for range 20 {
		if v := w.look(3*ten, 2*time.Second); v.State != NotTold {
			t.Errorf("a burst: %+v", v)
		}
		w.look(0, 2*time.Second)
	}
	for range 20 {
		if v := w.look(ten, gapMost+time.Second); v.State != NotTold || !w.busy {
			t.Errorf("gaps: %+v, worth another look: %v", v, w.busy)
		}
	}
	w.times(2, ten)
	for i := range 20 {
		w.group.Devices[0].Limit = limit.None.Overlay(write(ten + uint64(i+1)))
		if v := w.look(ten, 2*time.Second); v.State != NotTold {
			t.Errorf("another rule: %+v", v)
		}
	}
	w.times(10, ten)
	w.group.Devices[0].Total = cgroupfs.Stat{} // the group was made anew
	before := w.j.Of("docker:1").Limits[0].To
	if v := w.look(ten, 2*time.Second); !v.Limits[0].To.Equal(before) {
		t.Errorf("counters that went back: %+v", v)
	}
	w.all = nil
	if v := w.look(ten, 2*time.Second); v.State != NotTold || v.Limits != nil || len(w.j.targets) != 0 {
		t.Errorf("no target any more: %+v", v)
	}
}

// What was measured of one group is not told of another one, nor of limits that came into force since.
func TestNotOfOthers(t *testing.T) {
	w := begin(t, write(ten), kernel())
	start := w.now
	v := w.times(5, ten)
	if got := v.After(start); v.State != Held || got.State != Held || !got.Since.Equal(v.Since) || len(got.Limits) != 1 || got.Limits[0] != v.Limits[0] {
		t.Errorf("%+v", got)
	}
	if got := v.After(start.Add(time.Second)); got.State != NotTold || !got.Since.IsZero() || got.Limits[0].State != NotTold || got.Limits[0].Rate != 0 || got.Limits[0].Why == "" || got.Limits[0].PerSec != ten {
		t.Errorf("measured before: %+v", got)
	}
	w.group.Path, w.all[0].Group = "/b", "/b"
	if v := w.look(0, 2*time.Second); v.State != NotTold {
		t.Errorf("another group: %+v", v)
	}
}

// What was charged above the limit is not held, until a measurement says otherwise.
func TestNotHeld(t *testing.T) {
	w := begin(t, write(ten), kernel())
	w.times(3, ten)
	v := w.times(20, ten*1.2)
	if v.State != NotHeld || v.Limits[0].Rate < 1.05*ten {
		t.Errorf("%+v", v)
	}
	since := v.Since
	if v = w.times(3, ten*1.2); !v.Since.Equal(since) {
		t.Errorf("since %v, and was %v", v.Since, since)
	}
	w.look(0, 2*time.Second)
	v = w.times(3, ten)
	if v.State != Held || !v.Since.After(since) {
		t.Errorf("%+v", v)
	}
	// Of two limits one that is not held counts.
	w = begin(t, write(ten).With(limit.WIOPS, limit.PerSecond(ten/4096/2)), kernel())
	if v := w.times(3, ten); v.State != NotHeld || len(v.Limits) != 2 || v.Limits[0].State != Held || v.Limits[1].State != NotHeld {
		t.Errorf("%+v", v)
	}
}

// Where the kernel charges some of the target's writes elsewhere, a measurement of its own group shows
// nothing, unless that is too much already.
func TestUncharged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*place.Expected)
		why    string
		unheld bool
	}{
		"v1 with the pacer": {func(e *place.Expected) { e.Buffered.Mechanism = place.Pacer }, "does not charge its buffered writes", false},
		"v1 without":        {func(e *place.Expected) { e.Buffered = place.By{Why: "it is v1"} }, "nothing holds its buffered writes: it is v1", true},
		"others' files":     {func(e *place.Expected) { e.Foreign = &place.By{Why: "no BPF"} }, "files of other cgroups: no BPF", true},
		"a volume":          {func(e *place.Expected) { e.Mapped.Mechanism = place.Volume }, "does not charge its mapped writes", false},
	} {
		e := kernel()
		c.change(e)
		w := begin(t, write(ten), e)
		if v := w.times(20, ten); v.State != NotTold || !strings.Contains(v.Limits[0].Why, c.why) || v.Limits[0].Unheld != c.unheld {
			t.Errorf("%s: %+v", name, v)
		}
		if v := w.times(20, 1.3*ten); v.State != NotHeld || v.Limits[0].Why != "" {
			t.Errorf("%s, too much: %+v", name, v)
		}
	}
	e := kernel()
	e.Foreign = &place.By{Mechanism: place.Pacer}
	w := begin(t, write(ten), e)
	if v := w.times(3, ten); v.State != Held {
		t.Errorf("a pacer that holds what escapes: %+v", v)
	}
	w.group.Paced = &watch.Paced{Lapsed: "it was killed"}
	if v := w.times(3, ten); v.State != NotTold || !strings.Contains(v.Limits[0].Why, "it was killed") {
		t.Errorf("a pacer that has ended: %+v", v)
	}
	w = begin(t, write(ten), e)
	w.group.Paced = &watch.Paced{Missed: "processes of cgroup /a/b cannot be paused"}
	if v := w.times(3, ten); v.State != NotTold || !strings.Contains(v.Limits[0].Why, "/a/b cannot be paused") {
		t.Errorf("a pacer that cannot pause all of them: %+v", v)
	}
	w = begin(t, write(ten), nil)
	if v := w.times(3, ten); v.State != NotTold || !strings.Contains(v.Limits[0].Why, "does not know yet") {
		t.Errorf("%+v", v)
	}
}

// What was held is not told to be held once the kernel charges some of the target's I/O to others: the target stays below
// its limit by what it is charged for, and may be above it.
func TestHeldBeforeIsNotHeldNow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		why    string
		unheld bool
	}{
		"the pacer has ended": {func(w *world) { w.group.Paced = &watch.Paced{Lapsed: "it was killed"} }, "it was killed", false},
		"nothing holds it": {func(w *world) {
			e := kernel()
			e.Foreign = &place.By{Why: "no BPF"}
			w.group.Devices[0].Expected = e
		}, "files of other cgroups: no BPF", true},
		"another disk's file system": {func(w *world) {
			e := kernel()
			e.Buffered = place.By{Mechanism: place.Pacer}
			w.group.Devices[0].Expected = e
		}, "does not charge its buffered writes", false},
	} {
		e := kernel()
		e.Foreign = &place.By{Mechanism: place.Pacer}
		w := begin(t, write(ten), e)
		if v := w.times(3, ten); v.State != Held {
			t.Fatalf("%s: %+v", name, v)
		}
		before := w.group
		c.change(w)
		v := w.times(20, ten*0.6) // and as much again to files of others
		if l := v.Limits[0]; v.State != NotTold || !v.Since.IsZero() || !strings.Contains(l.Why, c.why) || l.Unheld != c.unheld {
			t.Errorf("%s: %+v", name, v)
		}
		// It is charged for all again: what was held before there was a doubt does not come back, and only what is
		// charged from now on counts.
		w.times(1, ten)
		w.group.Paced, w.group.Devices[0].Expected = before.Paced, e
		start := w.now
		if v = w.times(2, ten); v.State != NotTold || !strings.Contains(v.Limits[0].Why, "not at its limit") {
			t.Errorf("%s, and is over: %+v", name, v)
		}
		if v = w.times(1, ten); v.State != Held || v.Limits[0].From.Before(start) || v.Since.Before(start) {
			t.Errorf("%s, and is over: %+v, since %v", name, v, start)
		}
	}
	// That it is not known for a moment what holds a limit is no reason to doubt.
	e := kernel()
	w := begin(t, write(ten), e)
	w.times(3, ten)
	w.group.Devices[0].Expected = nil
	if v := w.times(1, 0); v.State != Held {
		t.Errorf("%+v", v)
	}
	// What was above its limit is not held, whatever else it does.
	w = begin(t, write(ten), e)
	w.times(3, ten*1.3)
	e = kernel()
	e.Foreign = &place.By{Why: "no BPF"}
	w.group.Devices[0].Expected = e
	if v := w.times(5, ten*0.6); v.State != NotHeld {
		t.Errorf("%+v", v)
	}
}

// Requests that the throttle lets pass as a whole make a window of some seconds too much, though the
// limit is held. A target that is above its limit is found to be with such requests too.
func TestLargeRequests(t *testing.T) {
	const request = 8 << 20 // at ten, more than one in a second
	for _, every := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second} {
		for _, c := range []struct {
			factor float64
			want   State
		}{{1, Held}, {1.5, NotHeld}, {0.75, NotTold}} {
			w := begin(t, write(ten), kernel())
			start, told := w.now, NotTold
			for range 200 {
				released := uint64(c.factor * ten * (w.now.Add(every).Sub(start).Seconds()) / request)
				d := &w.group.Devices[0]
				d.Total.WrittenBytes, d.Total.Writes = released*request, released
				v := w.look(0, every)
				if told = v.State; told != NotTold && told != c.want {
					t.Fatalf("a look every %s: %+v", every, v)
				}
				if l := v.Limits[0]; told == NotTold && !strings.HasPrefix(l.Why, notYet) {
					t.Fatalf("a look every %s: %+v", every, v)
				}
			}
			if told != c.want {
				t.Errorf("a look every %s, at %.2f of its limit: %s", every, c.factor, told)
			}
		}
	}
	// Of three seconds, each with four of these requests, it is not told. That is no doubt for ever.
	w := begin(t, write(ten), kernel())
	at := func(requests uint64) Verdict {
		d := &w.group.Devices[0]
		d.Total.WrittenBytes, d.Total.Writes = d.Total.WrittenBytes+requests*request, d.Total.Writes+requests
		return w.look(0, 3*time.Second)
	}
	at(4)
	if v := at(4); v.State != NotTold || v.Limits[0].Why != tooLarge {
		t.Errorf("%+v", v)
	}
	if v := w.times(20, ten); v.State != Held || v.Limits[0].Why != "" {
		t.Errorf("%+v", v)
	}
	// With small requests the same is too much.
	w = begin(t, write(ten), kernel())
	if v := w.times(3, 1.118*ten); v.State != NotHeld {
		t.Errorf("%+v", v)
	}
}

// Whatever a group does, held is only said of a window of at least WindowLeast in which what was
// charged is between 0.9 and 1.05 of the limit.
func TestHeldIsMeasured(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := begin(t, write(ten), kernel())
		points := map[time.Time]uint64{}
		note := func() { points[w.now] = w.group.Devices[0].Total.WrittenBytes }
		note()
		for range 100 {
			v := w.look(ten*(0.8+0.4*random.Float64()), time.Duration(500+random.IntN(3000))*time.Millisecond)
			note()
			l := v.Limits[0]
			if l.State == NotTold {
				continue
			}
			over := l.To.Sub(l.From)
			mean := float64(points[l.To]-points[l.From]) / over.Seconds() / ten
			if _, known := points[l.From]; !known || over < WindowLeast || (l.State == Held) != (mean <= 1.05) || mean < 0.9 {
				t.Fatalf("seed %d: %+v, %.3f over %v", seed, l, mean, over)
			}
		}
	}
}
