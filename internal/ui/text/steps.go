package text

import (
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Decision says which device each place resolved to, and what is expected to hold there.
func Decision(out *cli.Out, d place.Decision) {
	if !out.Tells() {
		return
	}
	for _, e := range d.Places {
		out.Say("%s: %s (%s)", e.Limit, e.Chain, e.Device.Number)
		for _, note := range e.Chain.Notes {
			out.Say("note: %s", note)
		}
		for _, line := range e.Lines() {
			out.Say("%s", line)
		}
	}
	for _, note := range d.Notes() {
		out.Say("%s", note)
	}
}

// Steps prints what would be done.
func Steps(out *cli.Out, steps []hold.Step) {
	if len(steps) == 0 {
		out.Say("nothing would be changed")
	}
	for _, s := range steps {
		switch {
		case s.Unit != "" && s.Persist:
			out.Print("systemd: set %s of %s, and keep it over boots", s.Property, s.Unit)
		case s.Unit != "":
			out.Print("systemd: set %s of %s", s.Property, s.Unit)
		case s.Command != "":
			out.Print("run %s", s.Command)
		case s.Call != "":
			out.Print("%s", s.Call)
		case s.File != "" && s.Line == "":
			out.Print("remove %s", s.File)
		case s.Pace != nil && s.Pace.WBPS == 0:
			out.Print("pacer: release cgroup %s", s.Pace.Cgroup)
		case s.Pace != nil && s.Pace.Escapes:
			out.Print("pacer: hold the writes of cgroup %s to other groups' files, together with all its writes, at %s", s.Pace.Cgroup, limit.PerSecond(s.Pace.WBPS).Format(limit.WBPS))
		case s.Pace != nil:
			out.Print("pacer: hold the buffered writes of cgroup %s at %s", s.Pace.Cgroup, limit.PerSecond(s.Pace.WBPS).Format(limit.WBPS))
		case s.Mkdir != "":
			out.Print("mkdir %s", s.Mkdir)
		default:
			out.Print("write %q to %s", s.Line, s.File)
		}
	}
}
