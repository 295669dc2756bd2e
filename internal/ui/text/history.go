package text

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/chart"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/plot"
)

const historyRows = 10

// HistoryTitle says what a series is about.
func HistoryTitle(s watch.Series) string {
	title := plain.Line(s.Target)
	if len(s.Points) > 0 {
		const when = "2006-01-02 15:04:05"
		title += " · " + s.Points[0].At.Format(when) + " to " + s.Points[len(s.Points)-1].At.Format(when)
	}
	return title + fmt.Sprintf(" · a point each %g s", s.Step.Seconds())
}

// History prints a series as charts.
func History(out *cli.Out, s watch.Series) {
	out.Print("%s", HistoryTitle(s))
	for _, c := range chart.History(s) {
		out.Text(plot.Text(c, columnsOfCharts, historyRows) + "\n")
	}
}

// HistoryCSV writes a series as comma-separated values, with a head. A cell is empty where nothing
// is known, or where there is no limit.
func HistoryCSV(w io.Writer, s watch.Series) error {
	table := csv.NewWriter(w)
	head := []string{"time", "window_seconds", "device"}
	for _, k := range limit.Keys {
		head = append(head, k.String())
	}
	for _, k := range limit.Keys {
		head = append(head, "limit_"+k.String())
	}
	_ = table.Write(append(head, "some_percent", "full_percent", "dirty_bytes")) // Error tells
	for _, p := range s.Points {
		row := []string{p.At.UTC().Format(time.RFC3339), number(p.Window.Seconds()), plain.Line(p.Device.Node)}
		for _, k := range limit.Keys {
			if p.Device.Rates == nil {
				row = append(row, "")
				continue
			}
			row = append(row, number(p.Device.Rates.Get(k)))
		}
		for _, k := range limit.Keys {
			v, bound := p.Device.Limit.Get(k).Number()
			if !bound {
				row = append(row, "")
				continue
			}
			row = append(row, strconv.FormatUint(v, 10))
		}
		some, full, dirty := "", "", ""
		if p.Pressure != nil {
			some, full = number(p.Pressure.Some), number(p.Pressure.Full)
		}
		if p.Memory != nil {
			dirty = strconv.FormatUint(p.Memory.Dirty, 10)
		}
		_ = table.Write(append(row, some, full, dirty))
	}
	table.Flush()
	if err := table.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
