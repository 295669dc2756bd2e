package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/dirty"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/plot"
)

const (
	dirtyColumns = 80
	dirtyRows    = 8
)

func bytesText(n uint64) string { return limit.FormatMeasured(float64(n)) }

func dirtyText(c dirty.Count) string { return bytesText(c.Sum()) }

func (r dirtyReport) took() time.Duration { return r.readings[len(r.readings)-1].At }

func (r dirtyReport) title() string {
	title := "dirty pages of the host"
	if r.target != nil {
		title += " and " + r.target.String()
	}
	return fmt.Sprintf("%s · %s · kernel %s", title, cli.Duration(r.took()), kernelRelease())
}

// charts are one of the host and one of the group: their sizes differ.
func (r dirtyReport) charts() []plot.Chart {
	host := plot.Chart{Title: "host", XUnit: "s", XTo: r.took().Seconds(), Format: func(v float64) string { return limit.FormatMeasured(v) }}
	group := host
	lines := func(of func(dirty.Reading) *dirty.Count) []plot.Line {
		sum, writeback := plot.Line{Name: "dirty and writeback", Colour: "#d97706"}, plot.Line{Name: "writeback", Colour: "#2563eb"}
		for _, each := range r.readings {
			if c := of(each); c != nil {
				x := each.At.Seconds()
				sum.Points = append(sum.Points, plot.Point{X: x, Y: float64(c.Sum())})
				writeback.Points = append(writeback.Points, plot.Point{X: x, Y: float64(c.Writeback)})
			}
		}
		return []plot.Line{sum, writeback}
	}
	host.Lines = lines(func(each dirty.Reading) *dirty.Count { return &each.Host })
	host.Level, host.LevelName = throttleLevel(dirty.Host(r.readings))
	charts := []plot.Chart{host}
	if s := dirty.Group(r.readings); s != nil {
		group.Title = "memory cgroup " + r.group.Path()
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
	return float64(s.Levels.Throttle), "writers throttled from " + bytesText(s.Levels.Throttle)
}

func (a *app) printDirtyPages(r dirtyReport) {
	a.out.Print("%s", r.title())
	for _, c := range r.charts() {
		a.out.Print("%s", plot.Text(c, dirtyColumns, dirtyRows))
	}
	a.out.Print("%s", cli.Table(r.settingsTable(), 1))
	for _, line := range r.words() {
		a.out.Print("%s", line)
	}
}

// settingsTable is the six settings and what they come to here. Of a ratio and its bytes
// one is in force: the kernel sets the other to 0 (vm.rst).
func (r dirtyReport) settingsTable() [][]string {
	s := r.settings
	pair := func(name string, percent, bytes, at uint64, what string) [][]string {
		rows := [][]string{{"vm." + name + "_ratio", fmt.Sprintf("%d %%", percent), "of the memory that can become dirty: " + bytesText(at) + ", " + what},
			{"vm." + name + "_bytes", fmt.Sprint(bytes), "not in force, the ratio is"}}
		if bytes > 0 {
			rows[0][2], rows[1][2] = "not in force, the bytes are", bytesText(at)+": "+what
		}
		return rows
	}
	rows := append(pair("dirty_background", s.BackgroundRatio, s.BackgroundBytes, s.BackgroundAt, "above this the flusher writes back"),
		pair("dirty", s.Ratio, s.Bytes, s.LimitAt, "above this writers wait until there is less")...)
	flusher := "how often the flusher wakes to do so"
	if s.Writeback == 0 {
		flusher = "0: nothing is written back because of its age"
	}
	return append(rows, []string{"vm.dirty_expire_centisecs", fmt.Sprint(s.Expire.Milliseconds() / 10), cli.Duration(s.Expire) + ": pages dirty for longer are written back"},
		[]string{"vm.dirty_writeback_centisecs", fmt.Sprint(s.Writeback.Milliseconds() / 10), cli.Duration(s.Writeback) + ": " + flusher})
}

// words say whether writers were throttled.
func (r dirtyReport) words() []string {
	words := []string{"host: " + summaryText(dirty.Host(r.readings), "")}
	s := dirty.Group(r.readings)
	switch {
	case s != nil && s.Levels != nil:
		words = append(words, "memory cgroup "+r.group.Path()+": "+summaryText(*s, "its own, estimated, on file systems with cgroup writeback: "))
	case s != nil && r.group.Hierarchy().Version == cgroupfs.V1:
		words = append(words, fmt.Sprintf("memory cgroup %s: at most %s dirty or in writeback; cgroup v1 has no dirty threshold per group: at the memory limit its writers reclaim memory instead",
			r.group.Path(), dirtyText(s.Peak)))
	case s != nil:
		words = append(words, fmt.Sprintf("memory cgroup %s: at most %s dirty or in writeback; without a memory limit the group has no dirty threshold of its own", r.group.Path(), dirtyText(s.Peak)))
	case r.group != nil:
		words = append(words, "memory cgroup "+r.group.Path()+": it is gone")
	case r.target != nil:
		words = append(words, r.target.String()+": not shown: "+r.noGroup)
	}
	for _, b := range r.bounded {
		how := fmt.Sprintf("at most %d %% of the host's threshold", b.MaxPercent)
		if b.MaxBytes > 0 {
			how += " (" + bytesText(b.MaxBytes) + ")"
		}
		if b.MinPercent > 0 {
			how += fmt.Sprintf(", at least %d %%", b.MinPercent)
		}
		if b.Strict {
			how += ", held below the host's threshold too (strict_limit)"
		}
		words = append(words, "device "+b.Name+": "+how)
	}
	return words
}

func summaryText(s dirty.Summary, whose string) string {
	text := fmt.Sprintf("at most %s dirty or in writeback", dirtyText(s.Peak))
	if s.Levels == nil {
		return text + "; the thresholds are not known here"
	}
	text += fmt.Sprintf(", %.0f %% of the threshold (%s%s, the flusher's %s); writers are throttled from halfway between the two, %s: ", 100*s.Share,
		whose, bytesText(s.Levels.Limit), bytesText(s.Levels.Background), bytesText(s.Levels.Throttle))
	if s.Throttled == 0 {
		return text + "they were not"
	}
	return text + fmt.Sprintf("they were, in %d of %s", s.Throttled, strings.TrimSpace(cli.Plural(s.Readings, "reading", "readings")))
}
