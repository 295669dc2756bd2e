package main

import (
	"context"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/explain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/why"
)

// sayForeign warns of files that a container is writing to and whose writeback is charged
// to another group, as those in a volume are that an earlier container has made: the
// kernel does not hold that. Other targets are not asked about: it takes a
// part of a second, and they seldom come to other's files.
func (a *app) sayForeign(ctx context.Context, t target.Target, limits []limit.Asked, decided place.Decision) {
	writes := false
	for _, p := range decided.Places {
		writes = writes || p.LimitsWrites()
	}
	if len(t.Firsts) == 0 || t.Group.Hierarchy().Version != cgroupfs.V2 || !writes || a.out.Quiet {
		return
	}
	sources, err := a.whySources()
	if err != nil {
		a.out.Say("note: weir cannot see which files %s writes to: %v", t, err)
		return
	}
	facts, err := why.Gather(ctx, sources, explain.About(&t, limits, limit.HoldAuto)) // with Firsts its mounts tell its disks
	for _, p := range facts.Places {
		if err == nil {
			err = p.OwnersErr
		}
	}
	foreign := facts.Foreign()
	if len(foreign) > 0 {
		first := foreign[0]
		more := ""
		if n := len(foreign) - 1; n > 0 {
			more = " and " + cli.Plural(n, "other file", "other files")
		}
		if decided.Escapes != nil {
			a.out.Say("note: the kernel charges the writeback of %s%s to %s: weir's pacer is expected to hold that, and pauses %s for it; weir why %s --mend moves it to %s's group",
				why.Name(first), more, why.Whose(first.Owner), t, t, t)
			return
		}
		a.out.Say("warning: buffered writes to %s%s are NOT held: the kernel charges their writeback to %s; weir why %s --mend moves it to %s's group",
			why.Name(first), more, why.Whose(first.Owner), t, t)
	} else if err != nil {
		a.out.Say("note: weir cannot tell whether %s writes to other groups' files: %v", t, err)
	}
}
