package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/latency"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/plot"
	"github.com/weir-io/weir/internal/trace"
)

const (
	// latencySlots is how many stretches a run is cut into for a picture or a document.
	latencySlots = 96
	// latencyWrites are so many in a stretch that its p99 is not its slowest write, as far
	// as that leaves latencySlotsLeast stretches to draw.
	latencyWrites     = 200
	latencySlotsLeast = 24
	// latencyColumns is a terminal's width.
	latencyColumns = 80
	latencyRows    = 11
	// partNameColumns is what a part's name has on a terminal.
	partNameColumns = 17
	// partShown is from which share of a run's time on a part is drawn.
	partShown = 0.01
)

// runColours are the curves': blue without a limit, orange with one, green past the page
// cache.
func runColours() []string { return []string{"#2563eb", "#ea580c", "#059669"} }

// microsecondsText writes a latency beside an axis.
func microsecondsText(us float64) string {
	return cli.Latency(time.Duration(us * float64(time.Microsecond)))
}

// unitOf is the unit in which a size makes a number that is read easily.
func unitOf(bytes uint64) (name string, size float64) {
	if bytes >= 1<<30 {
		return "GiB", 1 << 30
	}
	return "MiB", 1 << 20
}

// curves is the times of writes over what was written: there the runs are beside each
// other, however long each took.
func curves(r latencyReport) plot.Chart {
	unit, size := unitOf(r.flags.sizeBytes)
	c := plot.Chart{Title: "p99 of a write, over what was written", Note: "dashed: p50", Log: true, XUnit: unit, Format: microsecondsText}
	for i, run := range r.runs {
		p99 := plot.Line{Name: run.Name(), Colour: runColours()[i]}
		p50 := plot.Line{Colour: runColours()[i], Faint: true}
		from := 0.0
		for _, s := range run.Slots(min(latencySlots, max(latencySlotsLeast, len(run.Writes)/latencyWrites))) {
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

// splitChart is where a run's writes spent their time, over the run's time: an area is a
// share of it.
func splitChart(run latency.Run) plot.Chart {
	s := run.Summary()
	c := plot.Chart{Title: run.Name() + ": where the time of writes went", Stacked: true, XUnit: "s", YTo: 100, XTo: s.Elapsed.Seconds(), Format: percentText,
		Note: fmt.Sprintf("%s, %s/s", cli.Duration(s.Elapsed), limit.FormatMeasured(s.BytesPerSec()))}
	slots := run.SplitSlots(latencySlots)
	for _, p := range partsShown(slots) {
		l := plot.Line{Name: p.Title(), Colour: plot.PartColour(int(p))}
		for _, slot := range slots {
			l.Points = append(l.Points, plot.Point{X: slot.To.Seconds(), Y: 100 * slot.Split.Share(p)})
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

func percentText(v float64) string { return fmt.Sprintf("%.0f %%", v) }

// partsShown are the parts that have a share of all the time worth a colour.
func partsShown(slots []latency.SplitSlot) []trace.Part {
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

func drawLatency(w io.Writer, r latencyReport) error {
	charts := []plot.Chart{curves(r)}
	for _, run := range r.runs {
		if len(run.SplitSlots(latencySlots)) > 0 {
			charts = append(charts, splitChart(run))
		}
	}
	return plot.Draw(w, r.title(), charts)
}

// writeLatencyCharts writes the curves and, beneath, each part's share of the time of
// writes over the run.
func writeLatencyCharts(b *strings.Builder, r latencyReport) {
	c := curves(r)
	c.Note = ""
	var solid []plot.Line
	for _, l := range c.Lines {
		if !l.Faint {
			solid = append(solid, l)
		}
	}
	c.Lines = solid // p50 is in the table
	b.WriteString(plot.Text(c, latencyColumns, latencyRows))
	const columns = latencyColumns - partNameColumns - 9 // two spaces before, one between, and the share
	for _, run := range r.runs {
		slots := run.SplitSlots(columns)
		if len(slots) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s: share of its writes' time over %s\n", run.Name(), cli.Duration(run.Summary().Elapsed))
		var sum trace.Split
		for _, s := range slots {
			sum = sum.Plus(s.Split)
		}
		for _, p := range partsShown(slots) {
			fmt.Fprintf(b, "  %-*s %s %3.0f %%\n", partNameColumns, p.Title(), plot.Spark(sharesOver(run, slots, p, columns), 1), 100*sum.Share(p))
		}
	}
}

// sharesOver is a part's share of the time of writes in each of some columns.
func sharesOver(run latency.Run, slots []latency.SplitSlot, p trace.Part, columns int) []float64 {
	took := run.Summary().Elapsed
	shares := make([]float64, columns)
	i := 0
	for x := range columns {
		middle := took * time.Duration(2*x+1) / time.Duration(2*columns)
		for i < len(slots)-1 && slots[i].To < middle {
			i++
		}
		shares[x] = slots[i].Split.Share(p)
	}
	return shares
}
