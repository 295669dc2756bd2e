package metrics

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
)

// BenchmarkPage writes the page of 2,000 limited groups, which were read before.
func BenchmarkPage(b *testing.B) {
	s := &still{s: &watch.Snapshot{}}
	for i := range 2000 {
		g := &watch.Group{Path: fmt.Sprintf("/system.slice/service-%d.service", i), Pressure: &watch.Pressure{}, Memory: &watch.Memory{}}
		g.Target = "unit:" + g.Path
		g.Devices = []watch.Device{{Number: blkdev.Number{Major: 8}, Node: "/dev/sda", Counted: true, Limit: limit.None.With(limit.WBPS, limit.PerSecond(1e6)),
			Total: cgroupfs.Stat{ReadBytes: 123456789, WrittenBytes: uint64(i) * 4096, Reads: 1234, Writes: uint64(i)}}}
		s.s.Groups = append(s.s.Groups, g)
	}
	h := Options{Feed: NewFeed(s, time.Hour)}.Handler()
	b.ReportAllocs()
	began, n := processor(b), 0
	for b.Loop() {
		n++
		r := httptest.NewRecorder()
		r.Body = nil
		h.ServeHTTP(r, httptest.NewRequest("GET", Route, nil))
		if r.Code != 200 {
			b.Fatal(r.Code)
		}
	}
	b.ReportMetric((processor(b)-began).Seconds()*1000/float64(n), "cpu-ms/op")
}

// processor is the processor time that the process has used.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
