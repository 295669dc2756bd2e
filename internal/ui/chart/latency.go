package chart

import (
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/latency"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/plot"
)

const (
	// writesOfSlot are so many in a stretch that its p99 is not its slowest write, as far
	// as that leaves slotsLeast stretches to draw.
	writesOfSlot = 200
	slotsLeast   = 24
	// partShown is from which share of a run's time on a part is drawn.
	partShown = 0.01
)

// runColours are the curves': blue without a limit, orange with one, green past the page
// cache.
func runColours() []string { return []string{"#2563eb", "#ea580c", "#059669"} }

// us is a time in microseconds.
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Microseconds writes a latency beside an axis.
func Microseconds(us float64) string {
	return cli.Latency(time.Duration(us * float64(time.Microsecond)))
}

// unitOf is the unit in which a size makes a number that is read easily.
func unitOf(bytes uint64) (name string, size float64) {
	if bytes >= 1<<30 {
		return "GiB", 1 << 30
	}
	return "MiB", 1 << 20
}

// Latency makes a chart of the times of writes over what was written: there the runs are beside
// each other, however long each took.
func Latency(r latency.Report) plot.Chart {
	unit, size := unitOf(r.Size)
	c := plot.Chart{Title: "p99 of a write, over what was written", Note: "dashed: p50", Log: true, XUnit: unit, Format: Microseconds}
	for i, run := range r.Runs {
		p99 := plot.Line{Name: run.Name(), Colour: runColours()[i]}
		p50 := plot.Line{Colour: runColours()[i], Faint: true}
		from := 0.0
		for _, s := range run.Slots(min(latency.SlotsMost, max(slotsLeast, len(run.Writes)/writesOfSlot))) {
			to := float64(s.Bytes) / size
			middle := (from + to) / 2
			p99.Points = append(p99.Points, plot.Point{X: middle, Y: us(s.P99)})
			p50.Points = append(p50.Points, plot.Point{X: middle, Y: us(s.P50)})
			from = to
		}
		c.Lines, c.XTo = append(c.Lines, p50, p99), max(c.XTo, from)
	}
	return c
}

// Splits makes a chart of each run that was traced: where its writes spent their time, over the
// run's time. An area is a share of it.
func Splits(r latency.Report) []plot.Chart {
	var charts []plot.Chart
	for _, run := range r.Runs {
		if slots := run.SplitSlots(latency.SlotsMost); len(slots) > 0 {
			charts = append(charts, splitsOf(run, slots))
		}
	}
	return charts
}

func splitsOf(run latency.Run, slots []latency.SplitSlot) plot.Chart {
	s := run.Summary()
	c := plot.Chart{Title: run.Name() + ": where the time of writes went", Stacked: true, XUnit: "s", YTo: 100, XTo: s.Elapsed.Seconds(),
		Format: func(v float64) string { return fmt.Sprintf("%.0f %%", v) },
		Note:   fmt.Sprintf("%s, %s/s", cli.Duration(s.Elapsed), limit.FormatMeasured(s.BytesPerSec()))}
	for _, p := range PartsShown(slots) {
		l := plot.Line{Name: p.Title(), Colour: plot.PartColour(int(p))}
		for _, slot := range slots {
			l.Points = append(l.Points, plot.Point{X: slot.To.Seconds(), Y: 100 * slot.Split.Share(p)})
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

// PartsShown are the parts that have a share of all the time worth a colour.
func PartsShown(slots []latency.SplitSlot) []trace.Part {
	var sum trace.Split
	for _, s := range slots {
		sum = sum.Plus(s.Split)
	}
	var shown []trace.Part
	for p := range trace.Parts {
		if sum.Share(p) >= partShown {
			shown = append(shown, p)
		}
	}
	return shown
}
