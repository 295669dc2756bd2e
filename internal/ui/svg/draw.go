package svg

import (
	"fmt"
	"io"

	"github.com/weir-io/weir/internal/look/dirty"
	"github.com/weir-io/weir/internal/look/latency"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/chart"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/plot"
	"github.com/weir-io/weir/internal/ui/text"
)

// Proof draws the rates of a proof over time into a file.
func Proof(path string, p prove.Proof) error {
	return write(path, func(w io.Writer) error { return plot.Draw(w, text.ProofTitle(p), chart.Proof(p.Rows, text.VerdictOf)) })
}

// Dirty draws dirty pages over time into a file.
func Dirty(path string, r dirty.Report) error {
	return write(path, func(w io.Writer) error { return plot.Draw(w, text.DirtyTitle(r), chart.Dirty(r)) })
}

// Latency draws the runs of an experiment into a file: the time of writes, and what it was spent
// on.
func Latency(path string, r latency.Report) error {
	charts := append([]plot.Chart{chart.Latency(r)}, chart.Splits(r)...)
	return write(path, func(w io.Writer) error { return plot.Draw(w, text.LatencyTitle(r), charts) })
}

// Trace draws the latencies of each kind of operation into a file, with what they are made of.
func Trace(path string, t trace.Traced) error {
	all := chart.Trace(t)
	title := fmt.Sprintf("weir trace · %s · %s · kernel %s", text.WhatOf(t.Target), cli.Duration(t.Took), t.Kernel)
	if len(all) == 0 {
		title += " · nothing seen"
	}
	return write(path, func(w io.Writer) error { return plot.DrawHistograms(w, title, all) })
}

// History draws what a group did over a time into a file.
func History(path string, s watch.Series) error {
	return write(path, func(w io.Writer) error {
		return plot.Draw(w, "weir history · "+text.HistoryTitle(s), chart.History(s))
	})
}
