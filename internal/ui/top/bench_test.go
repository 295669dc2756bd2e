package top

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
)

// BenchmarkScreen shows a snapshot of 2,000 limited groups, of which 20 write.
func BenchmarkScreen(b *testing.B) {
	n := &watch.Snapshot{At: time.Unix(1e9, 0), Window: time.Second, Watched: 2000}
	for i := range 2000 {
		g := &watch.Group{Path: fmt.Sprintf("/s%d.slice/service-%d.service", i/50, i)}
		g.Target = "unit:" + g.Path
		rates := &watch.Rates{}
		if i%100 == 0 {
			rates.WBPS = float64(i)
		}
		g.Devices = []watch.Device{{Number: blkdev.Number{Major: 8}, Node: "/dev/sda", Counted: true, Rates: rates, Limit: limit.None.With(limit.WBPS, limit.PerSecond(1e6))}}
		n.Groups = append(n.Groups, g)
	}
	s := Screen{Width: 120, Height: 40}
	b.ReportAllocs()
	for b.Loop() {
		s.Show(View{Snapshot: n})
		if s.Text() == "" {
			b.Fatal("nothing is shown")
		}
	}
}
