package metrics

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
)

// A reader is a sampler of one group with a limit on reads of 1 MB/s, at a time of its own.
type reader struct {
	at    time.Time
	read  uint64
	rates *watch.Rates
}

func (r *reader) Sample(context.Context) (*watch.Snapshot, error) {
	d := watch.Device{Number: blkdev.Number{Major: 8}, Node: "/dev/sda", Counted: true, Total: cgroupfs.Stat{ReadBytes: r.read}, Rates: r.rates,
		Limit: limit.None.With(limit.RBPS, limit.PerSecond(1e6)), Expected: &place.Expected{Expectation: place.Expectation{Read: place.By{Mechanism: place.Throttle}}}}
	return &watch.Snapshot{At: r.at, Groups: []*watch.Group{{Path: "/a", Devices: []watch.Device{d}}}}, nil
}

// reads has the group read at a rate, with readings a time apart.
func (r *reader) reads(t *testing.T, f *Feed, readings int, every time.Duration, bytesPerSec uint64) {
	t.Helper()
	r.rates = &watch.Rates{RBPS: float64(bytesPerSec)}
	for range readings {
		r.at, r.read = r.at.Add(every), r.read+uint64(every.Seconds()*float64(bytesPerSec))
		if _, err := f.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A limit is told to be held, or not, by what was measured of it lately, and by nothing else.
func TestLimitHeld(t *testing.T) {
	r := &reader{at: time.Unix(1e9, 0)}
	f := NewFeed(r, 0)
	h := Options{Feed: f}.Handler()
	held := func(when, want string) {
		t.Helper()
		_, text := get(t, h, Route)
		got := "absent"
		if value, is := parse(t, text)["weir_io_limit_held{cgroup=/a,device=/dev/sda,direction=read}"]; is {
			got = fmt.Sprint(value)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	held("at first", "absent")
	r.reads(t, f, 10, time.Second, 6e5)
	held("far below it", "absent")
	r.reads(t, f, 4, time.Second, 1e6)
	held("for too short a time", "absent")
	r.reads(t, f, 7, time.Second, 1e6)
	held("at it", "1")
	r.reads(t, f, 100, time.Second, 1e5)
	held("a while later", "1")
	r.reads(t, f, 10, time.Second, 2e6)
	held("above it", "0")
	r.reads(t, f, 10, time.Second, 1e5)
	held("below it again", "0")
	r.reads(t, f, 10, time.Minute, 1e5)
	held("long after that", "absent")
	r.reads(t, f, 10, 15*time.Second, 1e6)
	held("by scrapes alone", "absent")
}

// Groups that are far below their limits are not judged, and those that are so for long are forgotten.
func TestMeasuringForgets(t *testing.T) {
	r := &reader{at: time.Unix(1e9, 0)}
	f := NewFeed(r, 0)
	r.reads(t, f, 10, time.Second, 4e5)
	if len(f.measured.near) != 0 {
		t.Errorf("%v", f.measured.near)
	}
	r.reads(t, f, 10, time.Second, 1e6)
	if len(f.measured.near) != 1 {
		t.Errorf("%v", f.measured.near)
	}
	f.measured.look(&watch.Snapshot{At: r.at.Add(measuredMost + time.Second)})
	if len(f.measured.near) != 0 || len(f.measured.at(r.at)) != 0 {
		t.Errorf("%v", f.measured.near)
	}
}

// BenchmarkMeasuring judges 2,000 limited groups, of which some do I/O.
func BenchmarkMeasuring(b *testing.B) {
	for _, busy := range []int{0, 100, 2000} {
		b.Run(fmt.Sprint(busy), func(b *testing.B) {
			s := &watch.Snapshot{At: time.Unix(1e9, 0)}
			for i := range 2000 {
				d := watch.Device{Number: blkdev.Number{Major: 8}, Counted: true, Rates: &watch.Rates{}, Limit: limit.None.With(limit.WBPS, limit.PerSecond(1e6))}
				if i < busy {
					d.Rates.WBPS = 1e6
				}
				s.Groups = append(s.Groups, &watch.Group{Path: fmt.Sprintf("/system.slice/service-%d.service", i), Devices: []watch.Device{d}})
			}
			m := newMeasuring()
			for b.Loop() {
				s.At = s.At.Add(time.Second)
				m.look(s)
			}
		})
	}
}
