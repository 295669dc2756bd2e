package main

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/target"
)

// What holds buffered writes (--hold).
const (
	holdKernel = "kernel" // its own rule, as far as it does
	holdPacer  = "pacer"  // weir's pacer
	holdAuto   = "auto"   // the kernel where it does, the pacer elsewhere
)

func holdFlag(cmd *cobra.Command, into *string, usual string) {
	cmd.Flags().StringVar(into, "hold", usual, "`WHAT` holds buffered writes: kernel, pacer (stops the processes for moments), or auto (the pacer where the kernel does not)")
}

func checkHold(how string) error {
	if !slices.Contains([]string{holdKernel, holdPacer, holdAuto}, how) {
		return cli.Usagef("--hold %s: write kernel, pacer or auto", how)
	}
	return nil
}

// freezerController is v1's controller that stops processes.
const freezerController = "freezer"

// paces reports whether limits of a group are the pacer's to hold too, and why they cannot
// be if they should. Only bytes written are.
func (a *app) paces(g cgroupfs.Group, places []placed, how string) (bool, error) {
	if how == holdKernel {
		return false, nil
	}
	some := slices.ContainsFunc(places, func(p placed) bool {
		_, bound := p.Limit.WBPS.Number()
		return bound && (how == holdPacer || !a.expect(g, p).Buffered)
	})
	switch err := a.canPace(g); {
	case !some && how == holdPacer:
		return false, cli.Usagef("--hold pacer: it holds bytes written, and no such limit is named; add --write, or leave it out")
	case !some || err != nil && how == holdAuto:
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// canPace reports why the pacer cannot be had for a group.
func (a *app) canPace(g cgroupfs.Group) error {
	switch {
	case a.root != "/":
		return &cgroupfs.Unsupported{Feature: "pace with --root " + a.root, Reason: "the pacer runs on this host", Remedy: "leave out --root"}
	case os.Geteuid() != 0:
		return errors.New("pace: permission denied (it stops processes, and counts what they write; run weir as root)")
	case g.IsRoot():
		return errors.New("pace: the root group cannot be stopped; name a group below it")
	case g.Hierarchy().Version == cgroupfs.V1 && a.fs.With(freezerController) == nil:
		return &cgroupfs.Unsupported{Feature: "pace on cgroup v1", Reason: "the freezer controller is not mounted", Remedy: "mount -t cgroup -o freezer freezer DIR"}
	}
	return nil
}

// paceJob is what the pacer is asked for a group with rules.
func paceJob(g cgroupfs.Group, rules []cgroupfs.Rule) (j pacer.Job, some bool) {
	j = pacer.Job{Limited: pacer.PlaceOf(g, "blkio")}
	for _, r := range rules {
		if n, bound := r.Limit.WBPS.Number(); bound {
			if j.WBPS == 0 || n < j.WBPS {
				j.WBPS = n
			}
			j.Devices = append(j.Devices, r.Device)
		}
	}
	return j, len(j.Devices) > 0
}

func (a *app) pacer() pacer.Client { return pacer.Client{State: a.state} }

// pacedAs returns what the pacer holds of a group; nil: nothing.
func (a *app) pacedAs(g cgroupfs.Group) (*pacer.Job, error) {
	if a.root != "/" {
		return nil, nil
	}
	jobs, err := pacer.Paced(a.state)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.Limited == pacer.PlaceOf(g, "blkio") {
			return &j, nil
		}
	}
	return nil, nil
}

// markPaced notes in groups what the pacer holds of them.
func (a *app) markPaced(groups []showGroup) error {
	if a.root != "/" {
		return nil
	}
	jobs, err := pacer.Paced(a.state)
	for i := range groups {
		g := &groups[i]
		for _, j := range jobs {
			if j.Limited.Path == g.Cgroup && (j.Limited.Controller == "") == (g.Version == 2) {
				g.Paced = j.WBPS
			}
		}
	}
	return err
}

// repace has the pacer hold what the rules of a target's group say now, if it is to, or
// did before.
func (a *app) repace(t target.Target, pace bool) error {
	was, err := a.pacedAs(t.Group)
	if err != nil || !pace && was == nil {
		return err
	}
	rules, err := t.Group.RulesIfAny()
	if err != nil {
		return err
	}
	j, some := paceJob(t.Group, rules)
	if !some {
		return a.pacer().Remove(j.Limited)
	}
	note, err := a.pacer().Add(j)
	if note != "" {
		a.out.Say("warning: %s", note)
	}
	return err
}

// takeBack puts the rates that a group had into force again, where the pacer cannot be had
// that was to hold the new ones.
func (a *app) takeBack(ctx context.Context, t target.Target, was []cgroupfs.Rule, places []placed) error {
	var back []hold.Change
	for _, p := range places {
		before := limit.None
		for _, r := range was {
			if r.Device == p.Device {
				before = before.Overlay(r.Limit)
			}
		}
		change := hold.Change{Device: p.Device}
		for _, k := range limit.Keys {
			if p.Limit.Get(k).IsSet() {
				change.Limit = change.Limit.With(k, before.Get(k))
			}
		}
		back = append(back, change)
	}
	return a.enforce(ctx, t, a.planFor(t, back))
}

// pace has the pacer hold a room that no command is in yet, if it is to. It lets go when
// the room's group is gone.
func (a *app) pace(room *launch.Room, places []placed, how string) (bool, error) {
	pace, err := a.paces(room.IO, places, how)
	if err != nil || !pace {
		return false, err
	}
	cell, err := pacer.CellOf(a.fs, room.IO)
	if err != nil {
		return false, err
	}
	rules, err := room.IO.Rules()
	if err != nil {
		return false, err
	}
	j, _ := paceJob(room.IO, rules)
	j.Cell = pacer.PlaceOf(cell, freezerController)
	note, err := a.pacer().Add(j)
	if err != nil {
		return false, err
	}
	if note != "" {
		a.out.Say("warning: %s", note)
	}
	room.Join(cell)
	return true, nil
}

// readsShort reports whether a command is a dd that takes part of a block for all of it: the
// kernel ends reads of these devices early for whatever stops the process.
func readsShort(args []string) bool {
	from, whole := false, false
	for _, arg := range args[1:] {
		from = from || slices.Contains([]string{"if=/dev/zero", "if=/dev/urandom", "if=/dev/random"}, arg)
		whole = whole || strings.HasPrefix(arg, "iflag=") && strings.Contains(arg, "fullblock")
	}
	return path.Base(args[0]) == "dd" && from && !whole
}

// sayPaced says what the pacer does, and what that costs.
func (a *app) sayPaced(places []placed) {
	a.out.Say("buffered writes held by weir's pacer: it stops all processes of the group for moments, their computing too")
	if len(places) > 1 {
		a.out.Say("note: the pacer cannot tell disks apart: the lowest limit binds what is written to all disks together")
	}
}

// newPacer is the process that paces, newGuard the one that lets go when it dies. They are
// not for people.
func newPacer(a *app) *cobra.Command {
	return &cobra.Command{
		Use: pacer.PacerArg, Hidden: true, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fs, err := cgroupfs.Open("/")
			if err != nil {
				return err
			}
			defer fs.Close()
			return pacer.Serve(cmd.Context(), state.At("/"), fs)
		},
	}
}

func newGuard() *cobra.Command {
	return &cobra.Command{
		Use: pacer.GuardArg, Hidden: true, Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return pacer.Guard(os.Stdin, pacer.WatchOf(state.At("/"))) },
	}
}
