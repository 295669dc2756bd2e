package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
)

const (
	usualWidth = 80 // where the terminal's is not known
	// labelColumns is where figures and bars begin.
	labelColumns = 20
	// percentColumns are a figure beside a bar, and the gap after it.
	percentColumns     = 9
	barLeast, barMost  = 4, 30
	columnsOfTheShares = 2
)

// text is the whole view: a block for each kind of operation.
func (m model) text() string {
	width := m.width
	if width == 0 {
		width = usualWidth
	}
	lines := []string{m.head(), ""}
	if len(m.frame.Whole.Ops) == 0 {
		lines = append(lines, "nothing seen yet")
	}
	for _, o := range m.frame.Whole.Ops {
		lines = append(lines, block(o, lastOf(m.frame.Last, o.Kind), m.frame, width)...)
		lines = append(lines, "")
	}
	for _, b := range m.frame.Last.Behind {
		throttle := "not known"
		if b.ThrottleKnown {
			throttle = each(b.Throttle, b.Requests) + " each"
		}
		lines = append(lines, fmt.Sprintf("background: %ss %s, blk-throttle %s, device %s each", b.Direction(),
			cli.PerSecond(float64(b.Requests)/m.frame.Last.Took.Seconds()), throttle, each(b.Device, b.Requests)))
	}
	if m.height > 0 && len(lines) > m.height {
		lines = append(lines[:m.height-1], "…")
	}
	for i, line := range lines {
		lines[i] = cut(line, width)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func (m model) head() string {
	return fmt.Sprintf("%s left · q ends the trace and prints the report · %s", remaining(m.window-m.frame.Passed), plain.Line(m.title))
}

// remaining writes a time that counts down by the second.
func remaining(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return cli.Duration(d)
}

// lastOf finds a kind in a report; without operations there it is empty.
func lastOf(r trace.Report, kind trace.Kind) trace.OpsReport {
	for _, o := range r.Ops {
		if o.Kind == kind {
			return o
		}
	}
	return trace.OpsReport{Kind: kind}
}

// block shows one kind of operation: its figures, and bars of the last moment beside those of
// the whole time.
func block(whole, last trace.OpsReport, f trace.Frame, width int) []string {
	lines := []string{
		figures(whole.Kind.String(), "rate", "p50", "p99", "max"),
		figuresOf("  last second", last, f.Last.Took),
		figuresOf("  whole time", whole, f.Whole.Took),
	}
	shares, _ := whole.Shares()
	if len(shares) == 0 {
		return lines
	}
	split, name := last.AboveP50, "above p50"
	if whole.Verdict.All {
		split, name = last.Split, "all time"
	}
	// The same parts in both columns, so that a bar stays in its line.
	recent := map[trace.Part]trace.Share{}
	for _, s := range split.Shares() {
		recent[s.Part] = s
	}
	bar := min(max((width-labelColumns)/columnsOfTheShares-percentColumns, barLeast), barMost)
	lines = append(lines, fmt.Sprintf("%-*s%-*s%s", labelColumns, "  of "+name, bar+percentColumns, "last second", "whole time"))
	for _, s := range shares {
		lines = append(lines, fmt.Sprintf("%-*s%s%s", labelColumns, "  "+s.Title, share(recent[s.Part], bar), share(s, bar)))
	}
	return lines
}

// figures is a line of four, in columns that stay where they are.
func figures(name string, four ...any) string {
	return fmt.Sprintf("%-*s", labelColumns-2, name) + fmt.Sprintf("%12s%10s%10s%10s", four...)
}

func figuresOf(name string, o trace.OpsReport, took time.Duration) string {
	if o.Count == 0 || took <= 0 {
		return figures(name, "0/s", "–", "–", "–")
	}
	return figures(name, cli.PerSecond(float64(o.Count)/took.Seconds()), cli.Latency(o.P50), cli.Latency(o.P99), cli.Latency(most(o)))
}

// most is the longest operation: that of the whole trace, or the histogram's if the
// longest was at another time.
func most(o trace.OpsReport) time.Duration {
	if n := len(o.Buckets); n > 0 {
		return min(o.Max, o.Buckets[n-1].To)
	}
	return o.Max
}

func share(s trace.Share, bar int) string {
	percent := ""
	switch {
	case s.Percent > 0:
		percent = fmt.Sprintf("%d %%", s.Percent)
	case s.Share > 0:
		percent = "<1 %"
	}
	return fmt.Sprintf("%-*s%6s%*s", bar, cli.Bar(s.Share, bar), percent, percentColumns-6, "")
}

func each(sum time.Duration, requests uint64) string {
	return cli.Latency(sum / time.Duration(max(requests, 1)))
}

// cut is what of a line fits.
func cut(line string, width int) string { return plain.Cut(strings.TrimRight(line, " "), width) }
