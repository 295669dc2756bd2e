package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

const (
	arrivalOwn = 64 << 10              // what is smaller is a file system's own, and no writeback
	arrivalGap = 50 * time.Millisecond // a moment is not known better on a busy machine
)

// Arrivals are the moments at which a counter of written bytes grew.
type Arrivals struct {
	stop chan struct{}
	done chan struct{}
	mu   sync.Mutex
	all  []arrival
}

// An arrival is such a moment, and the counter's value.
type arrival struct {
	at    time.Duration
	gap   time.Duration // since the last look before
	bytes int64
	idle  time.Duration // for how long there had been nothing to write by then
}

// WatchWrites reads a counter until Rate is called: Charged or Done. What the counter
// has no value for is passed over.
func WatchWrites(counter func() (bytes int64, known bool)) *Arrivals {
	return watch(counter, func() bool { return false })
}

// WatchWriteback watches what a v2 group was charged for writing to a device, and for how
// long it had nothing under writeback.
func WatchWriteback(dir string, dev blkdev.Number) *Arrivals {
	return watch(Charged(dir, dev), nothingQueued(dir))
}

func watch(counter func() (bytes int64, known bool), idle func() bool) *Arrivals {
	a := &Arrivals{stop: make(chan struct{}), done: make(chan struct{})}
	began := time.Now()
	looked := time.Duration(0)
	var idled, on time.Duration // in all, and on end
	look := func() {
		bytes, known := counter()
		now := time.Since(began)
		switch {
		case idle():
			on += now - looked
		case on > CatchUp: // what is shorter the throttle saves
			idled += on
			fallthrough
		default:
			on = 0
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if n := len(a.all); known && (n == 0 || bytes >= a.all[n-1].bytes+arrivalOwn) {
			a.all = append(a.all, arrival{now, now - looked, bytes, idled})
		}
		looked = now
	}
	look()
	go func() {
		defer close(a.done)
		for {
			select {
			case <-a.stop:
				return
			case <-time.After(5 * time.Millisecond):
				look()
			}
		}
	}()
	return a
}

// RateOver is the Rate of a window. Writeback sends in one what a limit lets through in seconds, and
// a busy machine sees it late: up to four windows, until the moments are far enough apart.
func (a *Arrivals) RateOver(t testing.TB, window time.Duration) float64 {
	t.Helper()
	time.Sleep(window)
	for range 12 {
		if a.tell(window / 2) {
			break
		}
		time.Sleep(window / 4)
	}
	return a.Rate(t)
}

// tell reports whether the first and the last moment are so far apart that being late at them
// counts for less than 2.5 %.
func (a *Arrivals) tell(apart time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, last, found := ends(a.all)
	during := last.at - first.at
	return found && during >= apart && first.gap+last.gap <= during/40
}

// Rate ends the watch. It returns how much the counter grew a second between the first
// growth and the last whose moments are known, less the time in which there was nothing to
// write; 0 if there were no two.
func (a *Arrivals) Rate(t testing.TB) float64 {
	t.Helper()
	close(a.stop)
	<-a.done
	first, last, found := ends(a.all)
	if !found {
		t.Logf("%d arrivals, no two of them at known moments", len(a.all))
		return 0
	}
	bytes, idle := last.bytes-first.bytes, last.idle-first.idle
	during := last.at - first.at - idle
	t.Logf("%.1f MB in %.2f s, and %.2f s with nothing to write; %d arrivals%s", float64(bytes)/1e6, during.Seconds(), idle.Seconds(), len(a.all)-1, listed(a.all))
	return float64(bytes) / during.Seconds()
}

// listed tells when how many KiB came, if that can be told in a line.
func listed(all []arrival) string {
	var text strings.Builder
	for i := 1; i < len(all) && len(all) <= 40; i++ {
		fmt.Fprintf(&text, " %.2f:%d", all[i].at.Seconds(), (all[i].bytes-all[i-1].bytes)>>10)
	}
	return text.String()
}

// ends returns the first growth and the last whose moments are known. The counter's
// first value is none.
func ends(all []arrival) (first, last arrival, found bool) {
	known := slices.DeleteFunc(slices.Clone(all[min(1, len(all)):]), func(a arrival) bool { return a.gap > arrivalGap })
	if len(known) < 2 {
		return first, last, false
	}
	return known[0], known[len(known)-1], true
}

// Charged counts what a v2 group was charged for writing to a device. Writeback comes in
// requests of many MiB, each of which waits for its whole size and is then done in
// pieces: the kernel charges it as a whole in the moment in which the throttle lets it
// through (block/blk-cgroup.c, blk_cgroup_bio_start; before 5.12, blkcg_bio_issue_check),
// however long a busy machine takes for the pieces.
func Charged(dir string, dev blkdev.Number) func() (int64, bool) {
	return func() (int64, bool) {
		text, err := os.ReadFile(filepath.Join(dir, "io.stat"))
		if err != nil {
			return 0, false // the group is not there yet, or no more
		}
		for line := range strings.Lines(string(text)) {
			number, rest, _ := strings.Cut(line, " ")
			if number != dev.String() {
				continue
			}
			for _, field := range strings.Fields(rest) {
				if value, found := strings.CutPrefix(field, "wbytes="); found {
					n, err := strconv.ParseInt(value, 10, 64)
					return n, err == nil
				}
			}
		}
		return 0, true
	}
}

// nothingQueued tells whether a v2 group has no page under writeback, so that its limit has
// nothing to hold. Where other groups have much dirty, the flusher leaves one alone for
// seconds (wb_over_bg_thresh goes by its share of the background threshold), and its writer
// is throttled by what is dirty on the whole host (seen: 42 MB dirty, none under writeback).
// A group without the memory controller is never said to have none.
func nothingQueued(dir string) func() bool {
	return func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
		return strings.Contains("\n"+string(text), "\nfile_writeback 0\n")
	}
}

// Done counts what a device has written, whoever asked for it: good for requests so
// small that it does not matter when their pieces are done.
func Done(t testing.TB, dev blkdev.Number) func() (int64, bool) {
	return func() (int64, bool) {
		text, err := os.ReadFile("/sys/dev/block/" + dev.String() + "/stat")
		if err != nil {
			t.Errorf("watch writes: %v", err)
			return 0, false
		}
		traffic, err := parseStat(string(text))
		if err != nil {
			t.Errorf("watch writes: %v", err)
		}
		return traffic.WriteBytes, err == nil
	}
}
