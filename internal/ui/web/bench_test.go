package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
)

// BenchmarkFrame makes what all live pages of a host with 2,000 limited groups get each second, of
// which as many move as the name says. What it takes is beside the reading, and does not grow with
// the pages.
func BenchmarkFrame(b *testing.B) {
	for _, moving := range []int{0, 200, 2000} {
		b.Run(fmt.Sprint(moving), func(b *testing.B) {
			p := aPage(b, Options{})
			lately := moved{}
			var before *frame
			bytes := 0
			for i := range b.N {
				s := manyGroups(1993)
				for j, g := range s.Groups[7:] {
					d := g.Devices[0]
					rates := watch.Rates{WBPS: 1e6}
					if j < moving {
						rates.WBPS = float64(1e6 + i*1e5)
					}
					d.Rates = &rates
					g.Devices = []watch.Device{d}
					g.Pressure = pressed(1) // which wanders with the clock
				}
				s.At = s.At.Add(time.Duration(i) * time.Second)
				next := &frame{snapshot: s, list: p.listOf(s, lately.takes(s), nil, nil)}
				next.changes = next.list.since(before)
				before, bytes = next, len(next.changes)
			}
			b.ReportMetric(float64(bytes), "bytes/event")
		})
	}
}
