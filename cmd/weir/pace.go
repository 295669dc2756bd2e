package main

import (
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
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/state"
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

// withPace adds the steps that make the pacer hold a group that weir will make.
func withPace(host launch.Host, g cgroupfs.Group, d place.Decision, steps []hold.Step) ([]hold.Step, error) {
	if d.Escapes != nil {
		return append(steps, limiting.EscapesStep(g, d)), nil
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
