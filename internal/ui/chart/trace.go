package chart

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/plot"
)

// Each part has a colour of its own, or this does not compile.
const _ = uint(plot.PartsMost - int(trace.Parts))

// Trace makes a histogram of the latencies of each kind of operation, with what they are made of.
func Trace(t trace.Traced) []plot.Histogram {
	var all []plot.Histogram
	for _, o := range t.Ops {
		all = append(all, histogramOf(o, &t.Snapshot.Ops[o.Kind].Histogram))
	}
	return all
}

func histogramOf(o trace.OpsReport, h *trace.Histogram) plot.Histogram {
	p := plot.Histogram{Title: fmt.Sprintf("%s, %s by latency", o.Kind, cli.CountOf(o.Count, "call", "calls")),
		Note:    fmt.Sprintf("p50 %s, p99 %s, max %s", cli.Latency(o.P50), cli.Latency(o.P99), cli.Latency(o.Max)),
		Counted: "calls", Columns: columnsOf(h), Marks: []plot.Mark{{Name: "p50", X: us(o.P50)}, {Name: "p99", X: us(o.P99)}}, Format: roundUS,
		Sums: []plot.Sum{{Name: "all time", Note: cli.Latency(o.Sum()), Parts: byPart(o.Split)}}}
	if above := o.AboveP50.Time(); above > 0 {
		p.Sums = append(p.Sums, plot.Sum{Name: "above p50", Note: cli.Latency(above), Parts: byPart(o.AboveP50)})
	}
	for part := range trace.Parts {
		p.Parts = append(p.Parts, part.Title())
	}
	return p
}

// roundUS writes µs that are a round number.
func roundUS(us float64) string { return strings.Replace(Microseconds(us), ".0 ", " ", 1) }

// columnsMost is how many columns are told apart in a picture.
const columnsMost = 90

// columnsOf returns a histogram's buckets, two or more in a column if there are many. X is in
// µs.
func columnsOf(h *trace.Histogram) []plot.Column {
	first, last := -1, -1
	for i, c := range h {
		if c.Count > 0 && i > 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return nil
	}
	together := 1 << max(0, int(math.Ceil(math.Log2(float64(last-first+1)/columnsMost))))
	var all []plot.Column
	for at := first; at <= last; at += together {
		column := plot.Column{Parts: make([]float64, trace.Parts)}
		for i := at; i < min(at+together, len(h)); i++ {
			from, to := trace.Bounds(i)
			if i == at {
				column.From = float64(from) / float64(time.Microsecond)
			}
			column.To = float64(to) / float64(time.Microsecond)
			column.Count += float64(h[i].Count)
			for part, ns := range h[i].Parts {
				column.Parts[part] += float64(ns)
			}
		}
		all = append(all, column)
	}
	return all
}

// byPart are a split's seconds in the parts' order.
func byPart(split trace.Split) []float64 {
	var all []float64
	for _, ns := range split {
		all = append(all, float64(ns)/1e9)
	}
	return all
}
