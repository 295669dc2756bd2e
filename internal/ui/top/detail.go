package top

import (
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
)

// Detail is all that is known of one group, with what was measured of its limits.
func Detail(g *watch.Group, plan string, measured held.Verdict) []string {
	who := "cgroup " + plain.Line(g.Path) + ", owner " + plain.Line(g.Owner.String())
	if plan != "" {
		who += ", plan " + plain.Line(plan)
	}
	all := []string{plain.Line(g.Target), who, ""}
	for _, d := range g.Devices {
		all = append(all, plain.Line(d.Node)+" ("+d.Number.String()+")")
		for _, k := range limit.Keys {
			all = append(all, "  "+left(KeyText(k), len("write ops"))+"  "+rateLine(d, k))
		}
		if d.Expected != nil {
			for _, line := range d.Expected.Lines() {
				all = append(all, "  "+plain.Line(line))
			}
		}
		for _, l := range measured.Limits {
			if l.Device == d.Number {
				all = append(all, "  measured, "+KeyText(l.Key)+": "+MeasuredText(l))
			}
		}
	}
	if p := g.Pressure; p != nil && p.Known {
		all = append(all, "", fmt.Sprintf("waiting for I/O: some tasks %s of the time, all of them %s", PercentText(p.Some), PercentText(p.Full)))
	}
	if m := g.Memory; m != nil {
		all = append(all, fmt.Sprintf("dirty page cache: %s, of that under writeback: %s", limit.FormatMeasured(float64(m.Dirty)), limit.FormatMeasured(float64(m.Writeback))))
	}
	if p := g.Paced; p != nil {
		all = append(all, PacedLine(*p, g.Paused))
	}
	return append(all, "", "weir why "+plain.Line(cmdline.Quote(g.Target))+"   tells why a limit does not hold")
}

// wrapped breaks lines that are wider than the terminal: between columns, else between words. width is the
// terminal's, or 0: nothing is too wide.
func wrapped(lines []string, width int) (all []string) {
	const indent = 4
	for _, line := range lines {
		in := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))+indent)
		for width > 0 && plain.Width(line) > width {
			rest := []rune(line)
			end := breakAt(rest, len(in), width)
			if end == 0 {
				break // it is cut
			}
			all = append(all, strings.TrimRight(string(rest[:end]), " "))
			line = in + strings.TrimLeft(string(rest[end:]), " ")
		}
		all = append(all, line)
	}
	return all
}

// breakAt is where a line breaks that has no room: between columns, else between words; 0: nowhere.
func breakAt(line []rune, from, width int) (at int) {
	end := min(width, len(line)-1) // a character has a column at least, or belongs to the one before it
	for end > from && plain.Width(string(line[:end])) > width {
		end--
	}
	for ; end > from; end-- {
		switch {
		case line[end] != ' ':
		case line[end-1] == ' ':
			return end
		case at == 0:
			at = end
		}
	}
	return at
}

// rateLine is a rate beside its limit, and the whole since the group was made.
func rateLine(d watch.Device, k limit.Key) string {
	rate := unknown
	total, unit := float64(0), "ops"
	switch k {
	case limit.RBPS:
		total, unit = float64(d.Total.ReadBytes), ""
	case limit.WBPS:
		total, unit = float64(d.Total.WrittenBytes), ""
	case limit.RIOPS:
		total = float64(d.Total.Reads)
	case limit.WIOPS:
		total = float64(d.Total.Writes)
	}
	whole := limit.FormatMeasured(total)
	if unit != "" {
		whole = OpsText(total) + " " + unit
	}
	if d.Rates != nil {
		rate = limit.FormatMeasured(d.Rates.Get(k)) + "/s"
		if k.IsOps() {
			rate = OpsText(d.Rates.Get(k)) + " ops/s"
		}
	}
	text := right(rate, 14) + "   "
	if percent, known := d.Percent(k); known {
		text += right(PercentText(percent), 7) + " of " + d.Limit.Get(k).Format(k)
	} else if _, bound := d.Limit.Get(k).Number(); bound {
		text += "limit " + d.Limit.Get(k).Format(k)
	} else {
		text += "no limit"
	}
	if !d.Counted {
		return text
	}
	return left(text, 44) + "  " + whole + " in all"
}

// PacedLine says what weir's pacer holds of a group, and for how long it has paused the group, in one
// line. paused may be nil.
func PacedLine(p watch.Paced, paused *watch.Paused) string {
	return pacedText(p) + pausedText(paused)
}

// pausedText says for how long the pacer has paused a group.
func pausedText(p *watch.Paused) string {
	switch {
	case p == nil:
		return ""
	case p.Known:
		return fmt.Sprintf("; it pauses the group %s of the time, %.1f s in all", PercentText(p.Share), p.Total.Seconds())
	}
	return fmt.Sprintf("; it has paused the group for %.1f s in all", p.Total.Seconds())
}

func pacedText(p watch.Paced) string {
	rate := limit.PerSecond(max(p.WBPS, 1)).Format(limit.WBPS)
	switch {
	case p.Lapsed != "":
		return "weir's pacer was asked to hold writes at " + rate + " and does not: " + plain.Line(p.Lapsed)
	case p.Escapes:
		return "weir's pacer holds writes to other groups' files, with the group's own, at " + rate + missed(p)
	}
	return "weir's pacer holds writes at " + rate + missed(p)
}

func missed(p watch.Paced) string {
	if strings.TrimSpace(p.Missed) == "" {
		return ""
	}
	return ", except for " + plain.Line(p.Missed)
}
