package history

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
)

// A clocked history was recorded by a clock that was set.
type clocked struct {
	t   *testing.T
	dir string
}

// record keeps so many seconds from one on, each time with a new recorder.
func (c clocked) record(from, seconds int) { record1(c.t, c.dir, small(), from, from+seconds) }

// finds fails unless a second is found, alone and in a series.
func (c clocked) finds(n int) {
	c.t.Helper()
	r, when := reader(c.t, c.dir), start.Add(time.Duration(n)*time.Second)
	if s, err := r.At(c.t.Context(), when); err != nil || !s.At.Equal(when) {
		c.t.Errorf("at %d: %+v, %v", n, s, err)
	}
	s, err := r.Series(c.t.Context(), "docker:web", when, when.Add(9*time.Second))
	if err != nil || len(s.Points) != 20 || s.Step != time.Second { // on two devices
		c.t.Errorf("from %d on: step %s, %d points, %v", n, s.Step, len(s.Points), err)
	}
}

// What was recorded before the clock was set back is found, and what was recorded after it, also where both
// are in what would be one block.
func TestTheClockIsSetBack(t *testing.T) {
	for name, again := range map[string]bool{"weird goes on": false, "weird is started again": true} {
		t.Run(name, func(t *testing.T) {
			c := clocked{t, t.TempDir()}
			if again {
				c.record(0, 40)
				c.record(-3600, 120)
			} else {
				c.recordAtOnce([2]int{0, 40}, [2]int{-3600, 120})
			}
			for _, n := range []int{0, 20, 30, -3600, -3590, -3500} {
				c.finds(n)
			}
		})
	}
}

// Times that Go has read have a second clock, which nobody sets and Go compares by. The recorder goes by the
// host's.
func TestTheHostsClockCounts(t *testing.T) {
	r, err := Record(t.TempDir(), small())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := seen(0)
	s.At = time.Now()
	if err := r.Add(s); err != nil {
		t.Fatal(err)
	}
	if want := s.At.Round(0); r.last != want || r.writers[0].last != want {
		t.Errorf("recorded at %v, %v, want %v", r.last, r.writers[0].last, want)
	}
}

// recordAtOnce is record of several parts with one recorder.
func (c clocked) recordAtOnce(parts ...[2]int) {
	c.t.Helper()
	r, err := Record(c.dir, small())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range parts {
		for n := p[0]; n < p[0]+p[1]; n++ {
			if err := r.Add(seen(n)); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	if err := r.Close(); err != nil {
		c.t.Fatal(err)
	}
}

// A clock that was wrong at boot, as of a board without a battery, does not make a fine level look as if it went
// back for decades: the answer comes from the coarser one that has it.
func TestTheClockIsWrongAtBoot(t *testing.T) {
	c := clocked{t, t.TempDir()}
	c.record(0, 4000)
	r, err := Record(c.dir, small())
	if err != nil {
		t.Fatal(err)
	}
	add := func(s *watch.Snapshot, at time.Time) {
		s.At = at
		if err := r.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 5 {
		add(seen(n), time.Unix(int64(n), 0))
	}
	for n := 5000; n < 5350; n++ { // until the fine level has nothing else
		add(seen(n), seen(n).At)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := reader(t, c.dir).Series(t.Context(), "docker:web", start.Add(3000*time.Second), start.Add(5350*time.Second))
	if err != nil || s.Step != 10*time.Second || len(s.Points) == 0 || s.Points[0].At.After(start.Add(3100*time.Second)) {
		t.Errorf("step %s, %d points, %v", s.Step, len(s.Points), err)
	}
	c.finds(5300)
}
