package text

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/ui/cli"
)

// WhyCommand spells the question that a proof measures the answer to, for a shell. A scratch disk
// is gone by then, and its question is that of any place. version is --cgroup's value.
func WhyCommand(r prove.Request, version string) string {
	command := "weir why"
	if r.Target != nil {
		command += " " + cli.Quote(r.Target.String())
	}
	for _, dir := range r.Dirs {
		command += " --on " + cli.Quote(dir)
	}
	for _, l := range r.Asked {
		command += " " + cli.Flags(l)
	}
	if r.Target == nil && r.Hold != limit.HoldAuto {
		command += " --hold " + r.Hold.String()
	}
	if version != "" && version != "auto" {
		command += " --cgroup " + version
	}
	return command
}
