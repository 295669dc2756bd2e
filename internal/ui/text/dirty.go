package text

import (
	"fmt"

	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/dirty"
	"github.com/weir-io/weir/internal/ui/chart"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/plot"
)

const (
	// columnsOfCharts is a terminal's width.
	columnsOfCharts = 80
	dirtyRows       = 8
)

// DirtyTitle says what a report on dirty pages is about.
func DirtyTitle(r dirty.Report) string {
	title := "dirty pages of the host"
	if r.Target != nil {
		title += " and " + r.Target.String()
	}
	return fmt.Sprintf("%s · %s · kernel %s", title, cli.Duration(r.Took()), r.Kernel)
}

// Dirty prints a report on dirty pages.
func Dirty(out *cli.Out, r dirty.Report) {
	out.Print("%s", DirtyTitle(r))
	for _, c := range chart.Dirty(r) {
		out.Text(plot.Text(c, columnsOfCharts, dirtyRows) + "\n")
	}
	out.Text(cli.Table(settingsTable(r.Settings), 1) + "\n")
	for _, line := range r.Words() {
		out.Print("%s", line)
	}
}

// settingsTable is the six settings and what they come to here. Of a ratio and its bytes
// one is in force: the kernel sets the other to 0 (vm.rst).
func settingsTable(s kernel.Dirty) [][]string {
	pair := func(name string, percent, bytes, at uint64, what string) [][]string {
		rows := [][]string{{"vm." + name + "_ratio", fmt.Sprintf("%d %%", percent), "of the memory that can become dirty: " + size(at) + ", " + what},
			{"vm." + name + "_bytes", fmt.Sprint(bytes), "not in force, the ratio is"}}
		if bytes > 0 {
			rows[0][2], rows[1][2] = "not in force, the bytes are", size(at)+": "+what
		}
		return rows
	}
	rows := append(pair("dirty_background", s.BackgroundRatio, s.BackgroundBytes, s.BackgroundAt, "above this the flusher writes back"),
		pair("dirty", s.Ratio, s.Bytes, s.LimitAt, "above this writers wait until there is less")...)
	flusher := "how often the flusher wakes to do so"
	if s.Writeback == 0 {
		flusher = "0: no page is written back because of its age"
	}
	return append(rows, []string{"vm.dirty_expire_centisecs", fmt.Sprint(s.Expire.Milliseconds() / 10), cli.Duration(s.Expire) + ": the flusher writes back pages that are dirty for longer"},
		[]string{"vm.dirty_writeback_centisecs", fmt.Sprint(s.Writeback.Milliseconds() / 10), cli.Duration(s.Writeback) + ": " + flusher})
}
