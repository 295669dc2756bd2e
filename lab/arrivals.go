package lab

import (
	"os"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
)

// Writeback comes in requests of many MiB, each of which waits for its whole size under
// a limit and is then done in pieces. So a rate is exact only between the moments at
// which requests are let through: from the first piece of one to the first of another,
// however long a busy machine takes for the pieces in between.
const (
	arrivalPause = 150 * time.Millisecond // longer than between two pieces of a request
	arrivalFast  = 3                      // pieces come so many times faster than all on average
	arrivalOwn   = 64 << 10               // what is smaller is the file system's own
)

// Arrivals are what a device has been seen to do with writes.
type Arrivals struct {
	stop chan struct{}
	done chan struct{}
	all  []arrival
	err  error
}

// An arrival is a moment at which more had been written than before, and how much in all.
type arrival struct {
	at    time.Duration
	bytes int64
}

// WatchWrites watches a device until Rate is called.
func WatchWrites(t testing.TB, dev blkdev.Number) *Arrivals {
	t.Helper()
	a := &Arrivals{stop: make(chan struct{}), done: make(chan struct{})}
	began := time.Now()
	look := func() bool {
		text, err := os.ReadFile("/sys/dev/block/" + dev.String() + "/stat")
		if err != nil {
			a.err = err
			return false
		}
		traffic, err := parseStat(string(text))
		if err != nil {
			a.err = err
			return false
		}
		if len(a.all) == 0 || traffic.WriteBytes > a.all[len(a.all)-1].bytes {
			a.all = append(a.all, arrival{time.Since(began), traffic.WriteBytes})
		}
		return true
	}
	look()
	go func() {
		defer close(a.done)
		for look() {
			select {
			case <-a.stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return a
}

// Rate ends the watch. It returns what was written a second between two requests, the
// first and the last that were seen; 0 if there were no two.
func (a *Arrivals) Rate(t testing.TB) float64 {
	t.Helper()
	time.Sleep(arrivalPause) // the pieces of the last request
	close(a.stop)
	<-a.done
	if a.err != nil {
		t.Fatalf("watch writes: %v", a.err)
	}
	points := requests(a.all)
	if len(points) < 2 {
		t.Logf("%d arrivals, %d requests", len(a.all), len(points))
		return 0
	}
	first, last := points[0], points[len(points)-1]
	t.Logf("%.1f MB in %.2f s, %d arrivals, %d requests", float64(last.bytes-first.bytes)/1e6, (last.at - first.at).Seconds(), len(a.all), len(points))
	return rateOf(first, last)
}

func rateOf(from, to arrival) float64 {
	return float64(to.bytes-from.bytes) / (to.at - from.at).Seconds()
}

// requests puts the pieces of requests together: when the first came, and how much there
// was with the last. What comes in an even flow of small ones stays as it is.
func requests(all []arrival) []arrival {
	if len(all) == 0 {
		return nil
	}
	average := rateOf(all[0], all[len(all)-1])
	var points []arrival
	for from := 1; from < len(all); {
		to := from
		for to+1 < len(all) && all[to+1].at-all[to].at <= arrivalPause {
			to++
		}
		switch {
		case all[to].bytes-all[from-1].bytes < arrivalOwn:
		case to == from || rateOf(all[from], all[to]) > arrivalFast*average:
			points = append(points, arrival{all[from].at, all[to].bytes})
		default:
			points = append(points, all[from:to+1]...)
		}
		from = to + 1
	}
	return points
}
