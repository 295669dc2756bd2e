package chart

import (
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/ui/plot"
)

// Proof makes a chart of each row: three rates over time, beside the limit. notes are those
// of the charts, one for each row.
func Proof(rows []prove.Row, note func(prove.Row) string) []plot.Chart {
	var charts []plot.Chart
	for _, row := range rows {
		who := "writer"
		if row.Key.IsRead() {
			who = "reader"
		}
		charts = append(charts, plot.Chart{
			Title: row.Name, Note: note(row), XUnit: "s", Format: row.Format,
			Level: float64(row.Rate), LevelName: "limit " + row.Format(float64(row.Rate)),
			From: row.Trace.From.Seconds(), To: row.Trace.To.Seconds(), FromName: "the time that counts",
			Lines: []plot.Line{{Name: who, Points: points(row.Trace.Writer)}, {Name: "cgroup", Points: points(row.Trace.Cgroup)}, {Name: "device", Points: points(row.Trace.Device)}},
		})
	}
	return charts
}

func points(s prove.Series) []plot.Point {
	var all []plot.Point
	for _, p := range s {
		all = append(all, plot.Point{X: p.At.Seconds(), Y: p.Total})
	}
	return all
}
