package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/tally"
	"github.com/weir-io/weir/internal/running"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Run says what a command did, and what held.
func Run(out *cli.Out, r running.Report) {
	for _, d := range r.Devices {
		if d.Read != nil {
			sayVerdict(out, d, "read", *d.Read, limit.RBPS, limit.RIOPS)
		}
		if d.Write != nil {
			sayVerdict(out, d, "wrote", *d.Write, limit.WBPS, limit.WIOPS)
			sayEscapes(out, r, d)
		}
	}
	if r.HandedOn != "" {
		out.Say("note: %s hands its work to a daemon in another group, so this limit did not apply. Find that group with weir show, and limit it with weir set", r.HandedOn)
	}
	if r.Stops > 0 {
		out.Say("weir's pacer paused the command %s, because it wrote to files that the kernel charges to another group", cli.Plural(int(r.Stops), "time", "times"))
	}
}

// RunLeft says what remains of a command whose group is not removed yet, and what the kernel has
// killed. memory is the limit on its memory, in bytes; 0: none.
func RunLeft(out *cli.Out, r running.Report, memory uint64) {
	switch r.Left {
	case launch.LeftProcesses:
		out.Say("processes of the command are still running in %s; weir removes the group when they have exited", r.Cgroup)
	case launch.LeftQueued:
		out.Say("some of its writes still wait in the kernel for the limit: weir keeps the group and its limit until they are written, in about %s", cli.Duration(r.Queued))
	}
	if r.Starved && memory > 0 {
		out.Say("killed: out of memory (limit %s)", limit.FormatSize(memory))
	}
}

// RunDirty says that the group of a command is kept for what it left in memory.
func RunDirty(out *cli.Out, r running.Report) {
	if r.Left == launch.LeftDirty && r.Decided.Binds() && r.Dirty != nil {
		out.Say("%s of its writes are still in memory: weir keeps the group and its limit until they are written", limit.FormatMeasured(float64(*r.Dirty)))
	}
}

// stateWords spells what became of a limit.
func stateWords(s tally.State) string {
	switch s {
	case tally.Held:
		return "held"
	case tally.NotHeld:
		return "NOT held"
	case tally.NotTold:
		return "cannot tell whether it was held"
	}
	return "not tested"
}

func sayVerdict(out *cli.Out, d running.Device, done string, v tally.Verdict, keys ...limit.Key) {
	bounds := ""
	for _, k := range keys {
		if rate := d.Limit.Get(k); rate.IsSet() {
			bounds += ", limit " + rate.Format(k)
		}
	}
	if v.State == tally.Idle {
		out.Say("%s: %s nothing%s", d.Device.Node, done, bounds)
		return
	}
	took := max(v.Took, time.Microsecond)
	out.Say("%s: %s %s in %s: %s/s, %.0f ops/s%s: %s", d.Device.Node, done, limit.FormatMeasured(float64(v.Bytes)), cli.Duration(took),
		limit.FormatMeasured(float64(v.Bytes)/took.Seconds()), float64(v.Ops)/took.Seconds(), bounds, stateWords(v.State))
	sayBurst(out, v)
	for _, doubt := range v.Doubts {
		out.Say("  %s", doubt)
	}
}

// sayBurst says what part of it was more than a limit lets through, unless that was all.
func sayBurst(out *cli.Out, v tally.Verdict) {
	if v.Burst == nil || v.State != tally.NotHeld {
		return
	}
	size, ops := limit.FormatMeasured(float64(v.Burst.Bytes)), ""
	if size == limit.FormatMeasured(float64(v.Bytes)) {
		return
	}
	if v.Burst.Ops > 0 {
		ops = fmt.Sprintf(", in %d operations,", v.Burst.Ops)
	}
	out.Say("  %s of that%s took %s, which is more than the limit lets through", size, ops, cli.Duration(v.Burst.Took))
}

// sayEscapes says what went past a limit on writes, and where.
func sayEscapes(out *cli.Out, r running.Report, d running.Device) {
	v := d.Write
	if v.Escaped == 0 || v.State == tally.Held {
		return
	}
	size := limit.FormatMeasured(float64(v.Escaped))
	var charged, disk uint64
	if d.Charged != nil {
		charged = d.Charged.WrittenBytes
	}
	if d.Disk != nil {
		disk = d.Disk.WrittenBytes
	}
	out.Say("  the command wrote %s (to memory or disk); the kernel charged %s to its group; %s wrote %s so far, for all processes",
		limit.FormatMeasured(float64(r.Tally.Written)), limit.FormatMeasured(float64(charged)), d.Device.Node, limit.FormatMeasured(float64(disk)))
	switch {
	case r.Version == cgroupfs.V1:
		out.Say("  %s went past the limit: cgroup v1 charges their writeback to the root group", size)
	case r.Tally.Told:
		for _, f := range r.Tally.Escapes[:min(len(r.Tally.Escapes), escapesSaid)] {
			out.Say("  %s went past the limit: the kernel charges %s to %s", limit.FormatMeasured(float64(f.Bytes)), escapedFile(f), escapeOwner(f))
		}
	default:
		out.Say("  %s went past the limit: the kernel charges files that the command wrote to to another group%s", size, suspects(r.Tally, d.Device.Number))
	}
}

// escapesSaid is how many files are named.
const escapesSaid = 3

func escapedFile(f escape.File) string {
	if f.Path == "" {
		return fmt.Sprintf("inode %d on %s", f.Inode, f.Device)
	}
	return plain.Brief(f.Path)
}

func escapeOwner(f escape.File) string {
	if f.Owner.Root {
		return "the root group"
	}
	return "cgroup " + f.Owner.String()
}

// suspects are the files that were open on a device, if weir did not see which of them it was.
func suspects(s *tally.Sum, n blkdev.Number) string {
	var paths []string
	for _, o := range s.Open {
		if o.On(n) && !o.New && len(paths) < escapesSaid {
			paths = append(paths, plain.Brief(o.Path))
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return "; the command had " + strings.Join(paths, ", ") + " open"
}
