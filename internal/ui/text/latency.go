package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/latency"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/chart"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/plot"
)

const (
	latencyRows = 11
	// partNameColumns is what a part's name has on a terminal.
	partNameColumns = 17
)

// LatencyTitle says what an experiment was.
func LatencyTitle(r latency.Report) string {
	title := fmt.Sprintf("%s copied in blocks of 64 KiB · %s · cgroup %s · kernel %s", limit.FormatSize(r.Size), r.Chain, r.Version, r.Kernel)
	for _, p := range r.Places {
		title += " · " + p.Limit.String() + " on " + p.Device.Node
	}
	return title
}

// Latency prints an experiment: its runs in figures and over time, and what they show. verbose
// says what cannot be shown for each hook that the kernel does not have.
func Latency(out *cli.Out, r latency.Report, verbose bool) {
	out.Print("%s", LatencyTitle(r))
	table := [][]string{{"RUN", "WRITES", "p50", "p90", "p99", "p99.9", "MAX", "RATE"}}
	for _, run := range r.Runs {
		s := run.Summary()
		table = append(table, []string{run.Name(), fmt.Sprint(s.Count), cli.Latency(s.P50), cli.Latency(s.P90), cli.Latency(s.P99),
			cli.Latency(s.P999), cli.Latency(s.Max), limit.FormatMeasured(s.BytesPerSec()) + "/s"})
	}
	out.Text(cli.Table(table, 1, 2, 3, 4, 5, 6, 7) + "\n")
	out.Text(latencyCharts(r) + "\n")
	for _, line := range LatencyWords(r) {
		out.Print("%s", line)
	}
	sayUntraced(out, r.Runs, verbose)
	out.Say("the data was made in memory, because reading a source file would take page cache too")
}

// LatencyWords say what the runs of an experiment show, a sentence each.
func LatencyWords(r latency.Report) []string { return latency.Words(r.Runs, cli.Latency) }

// sayUntraced says what of the split is not known, and why.
func sayUntraced(out *cli.Out, runs []latency.Run, verbose bool) {
	said := map[string]bool{}
	say := func(what, line string) {
		if !said[what] {
			said[what] = true
			out.Say("%s", line)
		}
	}
	for _, run := range runs {
		if run.Trace == nil {
			say("", "where the time went is not known: "+run.NoTrace)
			continue
		}
		if !said["missing"] { // the same in each run
			said["missing"] = true
			sayMissing(out, run.Trace.Missing, verbose)
		}
		for _, l := range LostWords(run.Trace.Lost) {
			say("lost: "+l, run.Name()+": lost: "+l)
		}
	}
}

// latencyCharts are the curves and, beneath, each part's share of the time of
// writes over the run.
func latencyCharts(r latency.Report) string {
	var b strings.Builder
	c := chart.Latency(r)
	c.Note = ""
	var solid []plot.Line
	for _, l := range c.Lines {
		if !l.Faint {
			solid = append(solid, l)
		}
	}
	c.Lines = solid // p50 is in the table
	b.WriteString(plot.Text(c, columnsOfCharts, latencyRows))
	const columns = columnsOfCharts - partNameColumns - 9 // two spaces before, one between, and the share
	for _, run := range r.Runs {
		slots := run.SplitSlots(columns)
		if len(slots) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s: share of its writes' time over %s\n", run.Name(), cli.Duration(run.Summary().Elapsed))
		var sum trace.Split
		for _, s := range slots {
			sum = sum.Plus(s.Split)
		}
		for _, p := range chart.PartsShown(slots) {
			fmt.Fprintf(&b, "  %-*s %s %3.0f %%\n", partNameColumns, p.Title(), plot.Spark(sharesOver(run, slots, p, columns), 1), 100*sum.Share(p))
		}
	}
	return strings.TrimRight(b.String(), "\n")
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
