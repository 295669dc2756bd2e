package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newVolume(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "volume",
		Short: "Manage volumes: file systems with a size and an I/O limit",
		Long: "Manage volumes: file systems on block devices of their own. A limit on the device then holds everything that is\n" +
			"written there, including buffered writes on cgroup v1. Give a container or a virtual machine the directory where the\n" +
			"volume is mounted (docker run -v DIR:/data).\n\n" +
			"On cgroup v1 the limit is a rule of the root cgroup for that device. It holds everything that the kernel writes back\n" +
			"to the device. On Linux 6.2 and later, weir also bounds how much may wait in memory for the device, to half a second\n" +
			"of the limit. Direct and synchronous I/O of other cgroups needs a limit on those cgroups: --for TARGET, or weir set\n" +
			"TARGET --on DIR. On cgroup v2 all I/O needs such a limit.",
		Args: cli.NoSuchVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newVolumeCreate(a), newVolumeAdopt(a), newVolumeList(a), newVolumeSet(a), newVolumeResize(a), newVolumeUp(a), newVolumeDown(a), newVolumeDelete(a), newVolumeForget(a))
	for _, c := range cmd.Commands() {
		if c.Name() != "list" {
			a.dryFlag(c)
		}
		switch c.Name() {
		case "set", "resize", "up", "down", "delete", "forget":
			c.ValidArgsFunction = a.completeVolume
		}
	}
	return cmd
}

// ownVolumes refuses --root: volumes are this host's.
func (a *app) ownVolumes(verb string) error {
	if a.root == "/" {
		return nil
	}
	return &fault.Unsupported{Feature: verb + " with --root " + a.root, Reason: "volumes are this host's", Remedy: "leave out --root"}
}

// openVolumes is for verbs that change volumes.
func (a *app) openVolumes() (space.Volumes, error) {
	if err := a.ownVolumes("volume"); err != nil {
		return space.Volumes{}, err
	}
	if err := space.MayUseVolumes(); err != nil {
		return space.Volumes{}, err
	}
	if err := a.open(); err != nil {
		return space.Volumes{}, err
	}
	return space.OpenVolumes(a.host)
}

// onVolume makes a verb on one volume, which can be shown instead of done.
func (a *app) onVolume(cmd *cobra.Command, steps func(space.Volumes, context.Context, string) ([]hold.Step, error), do func(context.Context, space.Volumes, string) error) *cobra.Command {
	cmd.Args = oneVolume
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		volumes, err := a.openVolumes()
		if err != nil {
			return err
		}
		if a.dry {
			return a.shown("volume")(steps(volumes, cmd.Context(), args[0]))
		}
		return do(cmd.Context(), volumes, args[0])
	}
	return cmd
}

// reportVolumes ends a verb that changed some.
func (a *app) reportVolumes(all ...space.Volume) error {
	if !a.out.JSON {
		return nil
	}
	for i := range all {
		all[i].Err = text.Error(all[i].Err)
	}
	return a.out.Document(api.VolumesOf(all...))
}

// limitTargets sets the limit of a mounted volume on the targets that shall have it too. If the
// volume's limit is being changed, it includes the removed rates.
func (a *app) limitTargets(ctx context.Context, volumes space.Volumes, v space.Volume, l limit.Limit) (err error) {
	for _, one := range volumes.LimitTargets(ctx, v, l, !a.out.Quiet) {
		a.sayApart(one.Result, one.Err)
		err = text.Error(one.Err)
	}
	return err
}

// inFlags names the flag that an error is about.
func inFlags(err error) error {
	var root *space.RootTargetError
	if errors.As(err, &root) {
		return cli.Usagef("volume: --for %v", root)
	}
	return err
}
