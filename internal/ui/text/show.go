package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Show prints limited groups, each below the group that it is in.
func Show(out *cli.Out, s limiting.Shown) {
	if len(s.Groups) == 0 {
		out.Print("no group on this host has a disk I/O limit")
		return
	}
	var above []limiting.Group // the groups that this one is below, the root first
	for i, g := range s.Groups {
		for len(above) > 0 && !isBelow(g, above[len(above)-1]) {
			above = above[:len(above)-1]
		}
		indent := strings.Repeat("  ", len(above))
		above = append(above, g)
		if i > 0 {
			out.Print("")
		}
		for _, line := range groupLines(g, s.Target != nil) {
			out.Print("%s%s", indent, line)
		}
	}
}

func isBelow(g, above limiting.Group) bool {
	return g.Version == above.Version && strings.HasPrefix(g.Path, strings.TrimSuffix(above.Path, "/")+"/")
}

// groupLines are a group, and a table of its limits beside those that its owner keeps.
func groupLines(g limiting.Group, one bool) []string {
	lines := []string{fmt.Sprintf("%s  cgroup v%d, owner %s, %s", g.Target, int(g.Version), g.Owner, cli.Plural(g.Processes, "process", "processes"))}
	if one && g.Target != "cgroup:"+g.Path {
		lines = append(lines, "  in cgroup "+g.Path)
	}
	if g.Plan != nil {
		lines = append(lines, planLine(*g.Plan))
	}
	rows := [][]string{{"", "DEVICE", "", "NOW", "LIMIT"}}
	right := []int{3, 4}
	if g.Record != nil && len(g.Record.Limits) > 0 {
		rows[0], right = append(rows[0], strings.ToUpper(g.Record.By)+" KEEPS"), append(right, 5)
	}
	rows[0] = append(rows[0], "EXPECTED TO HOLD")
	for _, d := range append(g.Devices, onlyRecorded(g)...) {
		rows = append(rows, deviceRows(d, g.Record)...)
	}
	if len(g.Devices) == 0 {
		lines = append(lines, "  no limit")
	}
	if len(rows) > 1 {
		lines = append(lines, strings.Split(strings.TrimSuffix(cli.Table(rows, right...), "\n"), "\n")...)
	}
	lines = append(lines, pacedLines(g)...)
	if g.Space != nil {
		lines = append(lines, spaceLine(g.Space))
	}
	lines = append(lines, recordLines(g.Record)...)
	for _, k := range g.Kept {
		lines = append(lines, "  "+keptLine(k))
	}
	return lines
}

// planLine is the plan that a target has.
func planLine(p limiting.GroupPlan) string {
	line := fmt.Sprintf("  plan %s (%s)", p.Name, p.By)
	if p.Differs {
		line += ": its limits differ; weir plan diff shows where"
	}
	return line
}

// deviceRows has a row for each rate that is bounded, in force or on record.
func deviceRows(d limiting.Device, record *targets.Record) [][]string {
	var rows [][]string
	device := fmt.Sprintf("%s (%s)", d.Node, d.Number)
	if d.Volume != "" {
		device = fmt.Sprintf("%s (%s, volume %s)", d.Node, d.Number, d.Volume)
	}
	var kept limit.Limit
	if record != nil {
		kept = record.On(d.Number)
	}
	for _, k := range limit.Keys {
		r := d.Limit.Get(k)
		_, bound := r.Number()
		if _, recorded := kept.Get(k).Number(); !bound && !recorded {
			continue
		}
		now := "-"
		if d.Rates != nil && k.IsOps() {
			now = fmt.Sprintf("%.0f ops/s", d.Rates.Get(k))
		} else if d.Rates != nil {
			now = limit.FormatMeasured(d.Rates.Get(k)) + "/s"
		}
		row := []string{"", device, k.Direction(), now, boundText(r, k)}
		if record != nil && len(record.Limits) > 0 {
			row = append(row, boundText(kept.Get(k), k))
		}
		switch {
		case d.Expected != nil && bound:
			row = append(row, d.Expected.Brief(k))
		case bound:
			row = append(row, "not known")
		}
		rows = append(rows, row)
		device = ""
	}
	return rows
}

// boundText formats a rate for people; "none" if there is none.
func boundText(r limit.Rate, k limit.Key) string {
	if _, bound := r.Number(); !bound {
		return "none"
	}
	return r.Format(k)
}

// pacedLines say what the pacer holds of a group, or why it does not.
func pacedLines(g limiting.Group) (lines []string) {
	if g.Paced != 0 {
		lines = append(lines, "  buffered writes paced at "+limit.PerSecond(g.Paced).Format(limit.WBPS)+" by weir's pacer")
	}
	if g.Escapes != 0 {
		lines = append(lines, "  writes to other groups' files paced by weir's pacer, at "+limit.PerSecond(g.Escapes).Format(limit.WBPS)+" with the group's own")
	}
	if g.Missed != "" {
		lines = append(lines, "    but: "+g.Missed)
	}
	if g.Lapsed != "" {
		lines = append(lines, "  NOT held by weir's pacer, which was asked to: "+g.Lapsed)
	}
	return lines
}

// spaceLine is the quota that a target's files are in.
func spaceLine(st *quota.Status) string {
	by := ""
	if st.By != "weir" {
		by = ", not weir's"
	}
	return fmt.Sprintf("  stores %s in %s of at most %s (project %d on %s%s)", quota.Size(st.Usage.Bytes),
		cli.Plural(int(st.Usage.Files), "file", "files"), st.Bounds, st.Project, st.Mount, by)
}

// onlyRecorded are the devices that the owner keeps limits for, and that have none.
func onlyRecorded(g limiting.Group) []limiting.Device {
	if g.Record == nil {
		return nil
	}
	var only []limiting.Device
	for _, l := range g.Record.Limits {
		known := func(d limiting.Device) bool { return d.Number == l.Device }
		if l.Err == nil && !slices.ContainsFunc(g.Devices, known) && !slices.ContainsFunc(only, known) {
			only = append(only, limiting.Device{Device: blkdev.Device{Node: l.Path, Number: l.Device}}) // nothing is in force
		}
	}
	return only
}

// recordLines say what of the owner's record is in no table.
func recordLines(r *targets.Record) []string {
	if r == nil {
		return nil
	}
	if len(r.Limits) == 0 {
		return []string{fmt.Sprintf("  %s keeps no limit", r.By)}
	}
	var lines []string
	for _, l := range r.Limits {
		if l.Err != nil {
			lines = append(lines, fmt.Sprintf("  %s keeps %s on %s: %v", r.By, l.Limit, l.Path, l.Err))
			continue
		}
		another := func(o targets.Recorded) bool { return o.Err == nil && o.Device == l.Device && o.Path != l.Path }
		if slices.ContainsFunc(r.Limits, another) {
			lines = append(lines, fmt.Sprintf("  %s keeps %s on %s, which has another name there too", r.By, l.Limit, l.Path))
		}
	}
	return lines
}

// keptLine is a limit on weir's record.
func keptLine(k limit.Asked) string {
	text := "weir keeps " + k.Limit.String()
	if k.On != "" {
		text += " on " + k.On
	}
	if k.Hold != "" {
		text += " (--hold " + k.Hold.String() + ")"
	}
	return text + " for its next start"
}
