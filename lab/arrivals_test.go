package lab

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

func TestCharged(t *testing.T) {
	dir := t.TempDir()
	counter := Charged(dir, blkdev.Number{Major: 7, Minor: 1})
	if _, known := counter(); known {
		t.Error("known, of no group")
	}
	for text, want := range map[string]int64{
		"": 0,
		"7:1 rbytes=1 wbytes=42 rios=3 wios=4 dbytes=0 dios=0\n":                      42,
		"7:11 rbytes=1 wbytes=5 rios=3 wios=4\n7:1 \n":                                0,
		"7:11 rbytes=1 wbytes=5 rios=3 wios=4\n7:1 rbytes=0 wbytes=6 rios=0 wios=1\n": 6,
	} {
		if err := os.WriteFile(filepath.Join(dir, "io.stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if n, known := counter(); n != want || !known {
			t.Errorf("%q: %d, %v; want %d", text, n, known, want)
		}
	}
}

func TestEnds(t *testing.T) {
	at := func(ms, gap int, bytes int64) arrival {
		return arrival{time.Duration(ms) * time.Millisecond, time.Duration(gap) * time.Millisecond, bytes, 0}
	}
	all := []arrival{at(0, 5, 7), at(1000, 300, 10), at(2000, 5, 20), at(3000, 5, 30), at(4000, 300, 40)}
	if first, last, found := ends(all); !found || first.bytes != 20 || last.bytes != 30 {
		t.Errorf("%v, %v, %t", first, last, found)
	}
	for n := range 4 {
		if first, last, found := ends(all[:n]); found {
			t.Errorf("of %d: %v, %v", n, first, last)
		}
	}
}

// A window in which too little can be told lasts longer.
func TestRateOver(t *testing.T) { synctest.Test(t, testRateOver) }

func testRateOver(t *testing.T) {
	const mb = 1_000_000
	for every, most := range map[time.Duration]time.Duration{100 * time.Millisecond: 4, 2500 * time.Millisecond: 6, time.Hour: 16} {
		began := time.Now()
		a := WatchWrites(func() (int64, bool) { return int64(time.Since(began)/every) * mb, true })
		rate := a.RateOver(t, 4*time.Second)
		if took := time.Since(began); took < 4*time.Second || took > most*time.Second+20*time.Millisecond {
			t.Errorf("each %v: %v", every, took)
		}
		if want := mb / every.Seconds(); every < time.Hour && math.Abs(rate/want-1) > 0.01 {
			t.Errorf("each %v: %.0f, want %.0f", every, rate, want)
		}
	}
}

// The rate is from the first growth to the last, however large they are; what is tiny
// begins nothing and ends nothing.
func TestArrivals(t *testing.T) { synctest.Test(t, testArrivals) }

func testArrivals(t *testing.T) {
	const mb = 1_000_000
	began := time.Now()
	a := WatchWrites(func() (int64, bool) {
		switch at := time.Since(began); {
		case at < 50*time.Millisecond:
			return 0, false
		case at < 150*time.Millisecond:
			return 4096, true
		case at < 250*time.Millisecond:
			return 10 * mb, true
		case at < 450*time.Millisecond:
			return 12 * mb, true
		case at < 550*time.Millisecond:
			return 30 * mb, true
		}
		return 30*mb + 4096, true
	})
	time.Sleep(600 * time.Millisecond)
	want := 20 * mb / 0.3
	if got := a.Rate(t); math.Abs(got/want-1) > 0.2 {
		t.Errorf("%.0f, want %.0f", got, want)
	}
	if got := WatchWrites(func() (int64, bool) { return 7, true }).Rate(t); got != 0 {
		t.Errorf("%.0f of nothing", got)
	}
}

// A long time with nothing to write is not counted, a short one is.
func TestIdleArrivals(t *testing.T) { synctest.Test(t, testIdleArrivals) }

func testIdleArrivals(t *testing.T) {
	const mb = 1_000_000
	began := time.Now()
	a := watch(func() (int64, bool) {
		switch at := time.Since(began); {
		case at < 100*time.Millisecond:
			return 0, true
		case at < 800*time.Millisecond:
			return 10 * mb, true
		case at < 1000*time.Millisecond:
			return 20 * mb, true
		}
		return 30 * mb, true
	}, func() bool {
		at := time.Since(began) // for 400 ms and 100 ms
		return at > 200*time.Millisecond && at < 600*time.Millisecond || at > 850*time.Millisecond && at < 950*time.Millisecond
	})
	time.Sleep(1100 * time.Millisecond)
	want := 20 * mb / 0.5
	if got := a.Rate(t); math.Abs(got/want-1) > 0.2 {
		t.Errorf("%.0f, want %.0f", got, want)
	}
}

func TestNothingQueued(t *testing.T) {
	dir := t.TempDir()
	idle := nothingQueued(dir)
	if idle() {
		t.Error("a group without memory.stat has nothing queued")
	}
	for text, want := range map[string]bool{
		"file_dirty 0\nfile_writeback 4096\nfile_thp 0\n": false,
		"file_dirty 4096\nfile_writeback 0\nfile_thp 0\n": true,
		"file_dirty 0\n": false,
	} {
		if err := os.WriteFile(filepath.Join(dir, "memory.stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := idle(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
