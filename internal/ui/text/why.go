package text

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Why prints the answer to a question: whose limits they are, what holds on each place, and the
// findings.
func Why(out *cli.Out, r why.Report) {
	whyGroup(out, r)
	for _, places := range alike(r) {
		out.Print("")
		for _, i := range places {
			whyPlace(out, r.Places[i], r.Supposed)
		}
		matrix(out, r, places[0])
	}
	for _, f := range r.Findings {
		out.Print("")
		finding(out, f)
	}
	if r.Target == "" && r.Dirty != nil && r.Group != nil {
		dirtySettings(out, *r.Dirty)
	}
}

// whyGroup says whose limits, and where.
func whyGroup(out *cli.Out, r why.Report) {
	kernel := ""
	if r.Kernel != "" {
		kernel = " · kernel " + r.Kernel
	}
	switch {
	case r.Group == nil:
		out.Print("no limits on this host%s", kernel)
	case r.Target == "":
		out.Print("a command that weir run starts · cgroup v%d%s", r.Group.Version, kernel)
	default:
		out.Print("%s → cgroup %s → %s, %s · cgroup v%d%s", r.Target, r.Group.Path, owned(r), cli.Plural(r.Group.Processes, "process", "processes"), r.Group.Version, kernel)
	}
	if r.Target != "" {
		return
	}
	for _, m := range r.Mounted {
		for _, c := range m.Controllers {
			if c == "io" || c == "blkio" || c == "memory" {
				out.Print("  %s is on cgroup v%d at %s", c, m.Version, m.At)
			}
		}
	}
}

func owned(r why.Report) string {
	if r.Group.Owner.Kind == "unknown" {
		return "owner unknown"
	}
	return "owned by " + r.Group.Owner.String()
}

// alike joins places whose rows of the matrix are the same.
func alike(r why.Report) [][]int {
	var groups [][]int
	for i := range r.Places {
		same := slices.IndexFunc(groups, func(g []int) bool {
			return slices.EqualFunc(cellsOf(r, g[0]), cellsOf(r, i), func(a, b why.Cell) bool {
				return a.Held == b.Held && a.Mechanism == b.Mechanism && slices.Equal(a.Findings, b.Findings)
			})
		})
		if same < 0 {
			groups = append(groups, []int{i})
		} else {
			groups[same] = append(groups[same], i)
		}
	}
	return groups
}

func cellsOf(r why.Report, place int) []why.Cell {
	var cells []why.Cell
	for _, c := range r.Matrix {
		if c.Place == place {
			cells = append(cells, c)
		}
	}
	return cells
}

func whyPlace(out *cli.Out, p why.PlaceID, supposed bool) {
	var limits []string
	for _, d := range p.Devices {
		if d.Limit.Bounds() {
			limits = append(limits, d.Limit.Bound().String())
		}
	}
	switch limits = slices.Compact(limits); {
	case len(limits) > 0:
		out.Print("%s · %s", p.Chain, strings.Join(limits, "; "))
	case supposed || len(p.Devices) == 0:
		out.Print("%s", p.Chain)
	default:
		out.Print("%s · no limit", p.Chain)
	}
}

// columns are the matrix's, in its order.
var columns = []load.Path{load.Direct, load.Sync, load.Buffered, "mapped"}

func matrix(out *cli.Out, r why.Report, place int) {
	rows := [][]string{{"", "direct", "synchronous", "buffered", "mapped, msync"}}
	for _, read := range []bool{false, true} {
		row, by := []string{map[bool]string{false: "write", true: "read"}[read]}, []string{"  by"}
		throttled := false
		for _, path := range columns {
			text, mechanism := "-", ""
			for _, c := range cellsOf(r, place) {
				if c.Path == path && c.Read == read {
					text, mechanism = cellText(c, r.Supposed), string(c.Mechanism)
					throttled = throttled || c.Held == why.Yes
				}
			}
			row, by = append(row, text), append(by, mechanism)
		}
		if read && throttled {
			row[len(row)-1] += "   (reads from the page cache are not disk I/O)"
		}
		rows = append(rows, row)
		if slices.ContainsFunc(by[1:], func(m string) bool { return m != "" }) {
			rows = append(rows, by)
		}
	}
	out.Text(cli.Table(rows))
}

func cellText(c why.Cell, supposed bool) string {
	text := map[why.Held]string{why.Yes: "expected", why.AtDevice: "at the disk", why.No: "NO", why.NoLimit: "no limit", why.Unknown: "cannot tell"}[c.Held]
	if supposed && c.Held == why.Yes {
		text = "would hold"
	}
	for _, n := range c.Findings {
		text += fmt.Sprintf(" [%d]", n)
	}
	return text
}

func finding(out *cli.Out, f why.Finding) {
	out.Print("[%d] %s (%s)", f.Number, f.Code, f.Severity)
	out.Print("    %s", plain.Line(f.Text)) // names in it are others': each stays in its line
	for _, e := range f.Evidence {
		out.Print("    seen   %s: %s", plain.Line(e.File), plain.Line(e.Value))
	}
	word := "fix   "
	for i, fix := range f.Fixes {
		if i > 0 {
			word = "or    "
		}
		out.Print("    %s %s", word, plain.Line(fix.Text))
		for _, line := range fix.Lines {
			out.Print("             %s", plain.Line(line))
		}
	}
}

// dirtySettings shows the six settings, and what they come to here.
func dirtySettings(out *cli.Out, d why.Dirty) {
	out.Print("")
	rows := [][]string{{"DIRTY PAGES", "", "SETTING IN FORCE"}}
	rows = append(rows, []string{"written back from", size(d.BackgroundAtBytes), inForce("dirty_background", d.BackgroundRatio, d.BackgroundBytes)},
		[]string{"writers throttled at", size(d.LimitAtBytes), inForce("dirty", d.Ratio, d.Bytes)},
		[]string{"written back after", cli.Duration(durationOf(d.ExpireSeconds)), fmt.Sprintf("vm.dirty_expire_centisecs=%.0f", 100*d.ExpireSeconds)},
		[]string{"flusher wakes every", cli.Duration(durationOf(d.WritebackSeconds)), fmt.Sprintf("vm.dirty_writeback_centisecs=%.0f", 100*d.WritebackSeconds)},
		[]string{"now dirty", size(d.DirtyNowBytes), "and " + size(d.WritebackNowBytes) + " on the way to disks"})
	out.Text(cli.Table(rows, 1))
}

func durationOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func size(bytes uint64) string { return limit.FormatMeasured(float64(bytes)) }

// inForce names the one of a pair that counts: the kernel sets the other to 0.
func inForce(name string, ratio, bytes uint64) string {
	if bytes != 0 {
		return fmt.Sprintf("vm.%s_bytes=%d (vm.dirty_ratio is not in force)", name, bytes)
	}
	return fmt.Sprintf("vm.%s_ratio=%d %% of available memory", name, ratio)
}
