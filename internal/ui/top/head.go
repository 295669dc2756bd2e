package top

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// disksShown bounds the lines of disks; the busiest are shown.
const disksShown = 4

// BusyDisks are the disks that did I/O in a snapshot's window: the busiest, and at most so many.
func BusyDisks(s *watch.Snapshot, most int) []watch.Disk {
	disks := slices.DeleteFunc(slices.Clone(s.Disks), func(d watch.Disk) bool {
		return d.Rates == nil || *d.Rates == (watch.Rates{}) && d.Use == 0
	})
	slices.SortStableFunc(disks, func(a, b watch.Disk) int { return cmp.Compare(b.Use, a.Use) })
	return disks[:min(len(disks), most)]
}

// HostLine says of the host what is neither a disk nor a group: "cgroup v2 · 212 groups · io pressure 12 %".
func HostLine(s *watch.Snapshot) string {
	host := []string{fmt.Sprintf("cgroup v%d", int(s.Version)), cli.Plural(s.Watched, "group", "groups")}
	if p := s.Pressure; p != nil && p.Known {
		host = append(host, "io pressure "+PercentText(p.Some))
	}
	if s.Unread > 0 {
		host = append(host, fmt.Sprintf("%d not read: %s", s.Unread, plain.Line(fmt.Sprint(s.Unreadable))))
	}
	return strings.Join(host, " · ")
}

// headOf are the lines above the table: one for each busy disk, and one for the host; more where weird
// does not tell what it told before. width is the terminal's, or 0.
func headOf(s *watch.Snapshot, from Source, width int) []string {
	first := s.At.Local().Format("15:04:05") + " · " + from.head()
	host := HostLine(s)
	if width > 0 && plain.Width(first+host) > width {
		_, host, _ = strings.Cut(host, " · ") // the version is of least use
	}
	all := append([]string{first + host}, from.lines(width)...)
	for _, d := range BusyDisks(s, disksShown) {
		all = append(all, diskLine(d, width))
	}
	return all
}

// diskLine has no queue where there is no room for it: the rates would be cut instead.
func diskLine(d watch.Disk, width int) string {
	name := plain.Line(path.Base(d.Node)) + "  " + PercentText(d.Use) + " busy"
	rates := fmt.Sprintf("  read %s/s  write %s/s", limit.FormatMeasured(d.Rates.RBPS), limit.FormatMeasured(d.Rates.WBPS))
	if line := name + fmt.Sprintf("  queue %.1f", d.Queue) + rates; width <= 0 || plain.Width(line) <= width {
		return line
	}
	return name + rates
}

// Table is one table of a reading: the host, its busy disks, and its groups. width bounds the
// lines; 0: nothing does.
func Table(v View, o Options, width int) string {
	rows := rowsOf(v.Snapshot, nil, o, nil, 0)
	all := headOf(v.Snapshot, v.Source, width)
	if len(rows) == 0 {
		all = append(all, "no group to show: "+o.whyNone())
	} else {
		all = append(all, lines(rows, rows, beside{plans: v.Plans, weird: v.Told}, width)...)
	}
	if width > 0 {
		for i := range all {
			all[i] = plain.Cut(all[i], width)
		}
	}
	return strings.Join(all, "\n") + "\n"
}

// whyNone says why no group is shown.
func (o Options) whyNone() string {
	switch {
	case o.Filter != "":
		return "none has " + plain.Quoted(o.Filter) + " in its name"
	case o.Active:
		return "none did any I/O"
	case o.All:
		return "none did any I/O since it was made"
	}
	return "none has a limit, and none did any I/O"
}
