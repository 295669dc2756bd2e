package chart

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/dirty"
	"github.com/weir-io/weir/internal/ui/plot"
)

// Dirty makes a chart of the host's dirty pages and one of the group's: their sizes differ.
func Dirty(r dirty.Report) []plot.Chart {
	host := plot.Chart{Title: "host", XUnit: "s", XTo: r.Took().Seconds(), Format: func(v float64) string { return limit.FormatMeasured(v) }}
	group := host
	lines := func(of func(dirty.Reading) *dirty.Count) []plot.Line {
		sum, writeback := plot.Line{Name: "dirty and writeback", Colour: "#d97706"}, plot.Line{Name: "writeback", Colour: "#2563eb"}
		for _, each := range r.Readings {
			if c := of(each); c != nil {
				x := each.At.Seconds()
				sum.Points = append(sum.Points, plot.Point{X: x, Y: float64(c.Sum())})
				writeback.Points = append(writeback.Points, plot.Point{X: x, Y: float64(c.Writeback)})
			}
		}
		return []plot.Line{sum, writeback}
	}
	host.Lines = lines(func(each dirty.Reading) *dirty.Count { return &each.Host })
	host.Level, host.LevelName = throttleLevel(dirty.Host(r.Readings))
	charts := []plot.Chart{host}
	if s := dirty.Group(r.Readings); s != nil {
		group.Title = "memory cgroup " + r.Group.Path()
		group.Lines = lines(func(each dirty.Reading) *dirty.Count { return each.Group })
		group.Level, group.LevelName = throttleLevel(*s)
		charts = append(charts, group)
	}
	return charts
}

// throttleLevel is where throttling begins, if that is near enough to be drawn.
func throttleLevel(s dirty.Summary) (float64, string) {
	if s.Levels == nil || s.Levels.Throttle > 20*max(s.Peak.Sum(), 1) {
		return 0, ""
	}
	return float64(s.Levels.Throttle), "writers throttled from " + limit.FormatMeasured(float64(s.Levels.Throttle))
}
