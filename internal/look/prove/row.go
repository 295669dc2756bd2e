package prove

import (
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Seen is a rate at one of the three places, per second: over the window, and the
// lowest and the highest of any second of it.
type Seen struct {
	Rate float64
	Low  float64
	High float64
}

func seen(s Series, from, to time.Duration) Seen {
	low, high := Spread(s, from, to)
	return Seen{Rate: s.Between(from, to) / (to - from).Seconds(), Low: low, High: high}
}

// A Row is one test, measured.
type Row struct {
	Test
	Judgement
	Name    string
	Device  blkdev.Device
	Writer  Seen
	Cgroup  Seen
	Disk    Seen
	Others  float64 // per second on the device, of others, as far as is known
	Window  time.Duration
	Ops     float64       // operations counted
	P50     time.Duration // of an operation, as the writer saw it
	P99     time.Duration
	Max     time.Duration
	Dirty   int64         // bytes that the writer was ahead, at the end
	Drain   time.Duration // how long those take at the limit
	Why     string        // why not held; empty if held
	Warning []string      // what a reader must know beside the verdict
	// Findings are the numbers of those in Place.Explained that are behind the verdict.
	Findings []int
	// Trace is what happened, as rates over time since the load began; for a chart.
	Trace Trace
}

// A Trace is three rates over time.
type Trace struct {
	Writer, Cgroup, Device Series
	From, To               time.Duration // what counts
}

// Format writes a rate of the row's kind.
func (t Test) Format(perSecond float64) string {
	if t.Key.IsOps() {
		return fmt.Sprintf("%.0f ops/s", perSecond)
	}
	return limit.FormatMeasured(perSecond) + "/s"
}
