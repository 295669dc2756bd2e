package chart

import (
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/plot"
)

// History makes a chart of each device's bytes, and one of its operations where a limit is on them.
// A faint line is the limit.
func History(s watch.Series) []plot.Chart {
	if len(s.Points) == 0 {
		return nil
	}
	var order []blkdev.Number
	devices := map[blkdev.Number][]watch.Point{}
	for _, p := range s.Points {
		n := p.Device.Number
		if devices[n] == nil {
			order = append(order, n)
		}
		devices[n] = append(devices[n], p)
	}
	began, ended := s.Points[0].At, s.Points[len(s.Points)-1].At
	unit, name := timeUnit(ended.Sub(began))
	var charts []plot.Chart
	for _, n := range order {
		points := devices[n]
		for _, keys := range [][2]limit.Key{{limit.RBPS, limit.WBPS}, {limit.RIOPS, limit.WIOPS}} {
			c := plot.Chart{Title: points[len(points)-1].Device.Node, XUnit: name, XTo: ended.Sub(began).Seconds() / unit, Format: formatOf(keys[0])}
			var rates, limits []plot.Line
			for i, k := range keys {
				colour := [...]string{"#2563eb", "#d97706"}[i]
				line, bound := plot.Line{Name: keyName(k), Colour: colour}, plot.Line{Name: keyName(k) + " limit", Colour: colour, Faint: true}
				for _, p := range points {
					x := p.At.Sub(began).Seconds() / unit
					if r := p.Device.Rates; r != nil {
						line.Points = append(line.Points, plot.Point{X: x, Y: r.Get(k)})
					}
					if v, is := p.Device.Limit.Get(k).Number(); is {
						bound.Points = append(bound.Points, plot.Point{X: x, Y: float64(v)})
					}
				}
				rates = append(rates, line)
				if len(bound.Points) > 0 {
					limits = append(limits, bound)
				}
			}
			if c.Lines = append(limits, rates...); len(limits) > 0 || !keys[0].IsOps() { // what a group does is drawn over its limit
				charts = append(charts, c)
			}
		}
	}
	return charts
}

// timeUnit is what an axis of a length is divided into, in seconds, and its name.
func timeUnit(d time.Duration) (seconds float64, name string) {
	switch {
	case d > 72*time.Hour:
		return 86400, "days"
	case d > 3*time.Hour:
		return 3600, "h"
	case d > 5*time.Minute:
		return 60, "min"
	}
	return 1, "s"
}

func keyName(k limit.Key) string {
	if k.IsOps() {
		return k.Direction() + " operations"
	}
	return k.Direction()
}

func formatOf(k limit.Key) func(float64) string {
	if k.IsOps() {
		return func(v float64) string { return cli.Count(uint64(v + 0.5)) }
	}
	return limit.FormatMeasured
}
