package main

import (
	"errors"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/target"
)

func (a *app) pacer() pacer.Client { return a.host.Pacer() }

// jobOf returns what the pacer was asked for a group; nil: nothing.
func (a *app) jobOf(g cgroupfs.Group) (*pacer.Job, error) { return a.host.JobOf(g) }

// holdEscapes makes the pacer hold what escapes a room, if that was decided.
func (a *app) holdEscapes(host launch.Host, room *launch.Room, d place.Decision) place.Decision {
	if d.Escapes == nil {
		return d
	}
	some, err := host.PaceEscapes(room)
	if err != nil {
		a.out.Say("warning: %v", err)
	}
	if !some || err != nil {
		d.Escapes = nil
	}
	return d
}

// stopsOf is how often the pacer has paused a group.
func (a *app) stopsOf(g cgroupfs.Group) uint64 {
	seen, err := a.pacer().Seen(pacer.PlaceOf(g, "blkio"))
	if err != nil {
		return 0 // it is only told
	}
	return seen.Stops
}

// repaceAs is repace by a decision. If nobody asked for the pacer and it is not available, that
// is a warning, and the decision changes.
func (a *app) repaceAs(t target.Target, was *pacer.Job, d *place.Decision) error {
	how, err := a.deciding().Pacing(*d, t.Owner.Unit)
	if err == nil {
		err = a.repace(t, was, how)
	}
	if err == nil || was != nil || d.Hold != limit.HoldAuto {
		return err
	}
	a.out.Say("warning: %v", err)
	*d, err = d.Without()
	return err
}

// repace makes the pacer hold what the rules of a target's group say now, or release the group
// if how is nil. was is what it held before; if the pacer is not available, it goes on holding
// that.
func (a *app) repace(t target.Target, was *pacer.Job, how *limit.Pacing) error {
	err := a.tryRepace(t, was, how)
	if err == nil {
		return nil
	}
	now, unread := a.jobOf(t.Group)
	switch {
	case unread != nil || reflect.DeepEqual(now, was):
		return errors.Join(err, unread)
	case was == nil:
		return errors.Join(err, a.pacer().Remove(now.Limited))
	}
	_, back := a.pacer().Add(*was)
	return errors.Join(err, back)
}

func (a *app) tryRepace(t target.Target, was *pacer.Job, how *limit.Pacing) error {
	if was == nil && how == nil {
		return nil
	}
	note, err := a.pacer().Hold(t.Group, how)
	if note != "" {
		a.out.Say("warning: %s", note)
	}
	return err
}

// cellsOf returns the cells in which the processes of a target will be paused.
func (a *app) cellsOf(t target.Target) ([]cgroupfs.Group, error) {
	members, err := target.Members(t.Group)
	if err != nil {
		return nil, err
	}
	return pacer.CellsFor(a.fs, t.Group, members...)
}

// repaceSteps is what repace would do.
func (a *app) repaceSteps(t target.Target, was *pacer.Job, d place.Decision) ([]hold.Step, error) {
	want := d.Paced
	switch {
	case d.Escapes != nil:
		return []hold.Step{escapesStep(t.Group, d)}, nil
	case want == nil && was == nil:
		return nil, nil
	case want == nil:
		return []hold.Step{{Pace: &hold.Pace{Cgroup: t.Group.Path()}}}, nil
	case was != nil:
		return hold.PaceSteps(t.Group, nil, want.WBPS, want.Devices), nil
	}
	cells, err := a.cellsOf(t)
	if err != nil {
		return nil, err
	}
	return hold.PaceSteps(t.Group, cells, want.WBPS, want.Devices), nil
}

// escapesStep is the request that makes the pacer hold what escapes a group. It moves no
// process before something escapes.
func escapesStep(g cgroupfs.Group, d place.Decision) hold.Step {
	return hold.Step{Pace: &hold.Pace{Cgroup: g.Path(), WBPS: d.Escapes.WBPS, Devices: d.Escapes.Devices, Escapes: true}}
}

// withPace adds the steps that make the pacer hold a group that weir will make.
func withPace(host launch.Host, g cgroupfs.Group, d place.Decision, steps []hold.Step) ([]hold.Step, error) {
	if d.Escapes != nil {
		return append(steps, escapesStep(g, d)), nil
	}
	if d.Paced == nil {
		return steps, nil
	}
	more, err := host.PaceSteps(g, d.Paced.WBPS, d.Paced.Devices)
	return append(steps, more...), err
}

// pace makes the pacer hold a room before the command is in it, if that was decided. If nobody
// asked for the pacer and it is not available, that is a warning, and the decision changes.
func (a *app) pace(host launch.Host, room *launch.Room, d place.Decision) (place.Decision, error) {
	if d.Paced == nil {
		return d, nil
	}
	note, err := host.Pace(room)
	if err != nil && d.Hold == limit.HoldAuto {
		a.out.Say("warning: %v", err)
		return d.Without()
	}
	if note != "" {
		a.out.Say("warning: %s", note)
	}
	return d, err
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

// newPacer is the verb of the pacer process, newGuard that of its guards. They are not for
// people.
func newPacer(a *app) *cobra.Command {
	return &cobra.Command{
		Use: pacer.PacerArg, Hidden: true, Args: cli.NoArguments,
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
		Use: pacer.GuardArg, Hidden: true, Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error { return pacer.Guard(os.Stdin, pacer.WatchOf(state.At("/"))) },
	}
}
