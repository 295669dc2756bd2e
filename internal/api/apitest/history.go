package apitest

import (
	"math"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
)

// History is a container that runs into its limit for two hours, with a pause in the middle; after
// it the limit is half of what it was.
func History() watch.Series {
	s := watch.Series{Target: "docker:web", Cgroup: "/system.slice/docker-3f2a.scope", Step: 10 * time.Second}
	began := time.Date(2026, 11, 26, 2, 0, 0, 0, time.UTC)
	for i := range 720 {
		most, at := uint64(10e6), began.Add(time.Duration(i+1)*s.Step)
		if i >= 400 {
			most = 5e6
		}
		p := watch.Point{At: at, Window: s.Step, Pressure: &watch.Pressure{Some: 71.25, Full: 66, Known: true}, Memory: &watch.Memory{Dirty: 12e6}}
		p.Device = watch.Device{Number: blkdev.Number{Major: 254, Minor: 16}, Node: "/dev/vdb", Rates: &watch.Rates{},
			Limit: limit.Limit{WBPS: limit.PerSecond(most)}}
		switch {
		case i < 300 || i >= 400:
			p.Device.Rates = &watch.Rates{RBPS: 1e6 + 1e6*math.Round(10*math.Sin(float64(i)/20))/10, WBPS: min(float64(most), float64(i)*1e5), WIOPS: 78.125}
		case i == 350:
			p.Device.Rates = nil
		}
		s.Points = append(s.Points, p)
	}
	return s
}
