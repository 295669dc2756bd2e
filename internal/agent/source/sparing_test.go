package source

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/lab"
)

// What costs much is done at once, and ever more rarely while it is asked for all the time. After a rest it is done at once
// again, and what was asked for last is never forgotten.
func TestSparing(t *testing.T) {
	lab.Unit(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		s := sparing{least: 10 * time.Second, most: time.Minute}
		ask := func() {
			s.ask(func() {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(began).Round(time.Second))
			})
			time.Sleep(time.Millisecond)
		}
		for range 200 {
			ask()
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		ask()
		ask()
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 70 * time.Second, 130 * time.Second, 190 * time.Second, 250 * time.Second}
		hour := 200*time.Second + time.Hour
		if want = append(want, hour, hour+10*time.Second); !slices.Equal(at, want) {
			t.Errorf("%v, want %v", at, want)
		}
		ask()
		ask()
		s.end()
		ask()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(at) != len(want)+1 {
			t.Errorf("%d times after the end", len(at)-len(want)-1)
		}
	})
}

// The zero sparing does it once a second.
func TestSparingEachSecond(t *testing.T) {
	lab.Unit(t)
	synctest.Test(t, func(t *testing.T) {
		var s sparing
		var n atomic.Int32
		for range 100 {
			s.ask(func() { n.Add(1) })
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n.Load() != 11 {
			t.Errorf("%d times within 10 s", n.Load())
		}
	})
}
