package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newVolumeCreate(a *app) *cobra.Command {
	var o cli.Volume
	cmd := &cobra.Command{
		Use:   "create DIR|NAME --size SIZE [LIMITS]",
		Short: "Create a volume and mount it",
		Long: "Create a volume: a file with all its space allocated in advance, a loop device with direct I/O on it, and a file\n" +
			"system. weir mounts it at DIR, or at " + volume.Dir + "/NAME. A DIR has a slash in it, and must be empty or not exist yet.",
		Example: "  weir volume create data --size 10GiB --write 10MB/s\n" +
			"  weir volume create /srv/data --size 10GiB --fs xfs --on /mnt/disk2\n" +
			"  weir volume create db --size 10GiB --write 50MB/s --for docker:web",
		Args: oneVolume,
		RunE: func(cmd *cobra.Command, args []string) error { return a.volumeCreate(cmd.Context(), args[0], o) },
	}
	o.RegisterNew(cmd.Flags())
	return cmd
}

func oneVolume(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("volume %s: one volume is needed, by its name or its directory; %d given", cmd.Name(), len(args))
	}
	return nil
}

func (a *app) volumeCreate(ctx context.Context, what string, o cli.Volume) error {
	spec, err := o.Spec(what)
	if err != nil {
		return err
	}
	volumes, err := a.openVolumes()
	if err != nil {
		return err
	}
	if err := o.ForLimited(spec.Limit); err != nil {
		return err
	}
	if a.dry {
		return a.shown("volume")(volumes.CreateSteps(ctx, spec))
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	made, err := volumes.Create(ctx, spec)
	if err != nil {
		return inFlags(err)
	}
	return a.afterVolume(ctx, volumes, made)
}

// afterVolume says what has become of a volume, and limits those that it is for.
func (a *app) afterVolume(ctx context.Context, volumes space.Volumes, made space.Made) error {
	text.VolumeMade(&a.out, made)
	if err := a.limitTargets(ctx, volumes, made.Volume, made.Limit); err != nil {
		return fmt.Errorf("volume %s is up, but not all its targets (--for) are limited: %w", made.Name, err)
	}
	if err := a.refreshBoot(ctx); err != nil {
		return err
	}
	return a.reportVolumes(made.Volume)
}

func newVolumeAdopt(a *app) *cobra.Command {
	var o cli.Volume
	cmd := &cobra.Command{
		Use:   "adopt DIR LIMITS",
		Short: "Limit an existing mount that has a device of its own",
		Long: "Limit an existing mount that has a device of its own: a logical volume, a loop device, or the only partition of a\n" +
			"disk. weir sets the limit as it does for a volume. weir volume delete restores the device's former settings and\n" +
			"touches no file.",
		Example: "  weir volume adopt /var/lib/mysql --write 50MB/s",
		Args:    oneVolume,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := o.Limit()
			if err != nil {
				return err
			}
			if !l.Bounds() {
				return cli.Usagef("volume adopt %s: no limit is named; add --read, --write, --read-iops or --write-iops", args[0])
			}
			volumes, err := a.openVolumes()
			if err != nil {
				return err
			}
			if err := o.ForLimited(l); err != nil {
				return err
			}
			dir := args[0]
			if !strings.Contains(dir, "/") {
				dir = "./" + dir
			}
			if a.dry {
				return a.shown("volume")(volumes.AdoptSteps(cmd.Context(), dir, l, o.For))
			}
			made, err := volumes.Adopt(cmd.Context(), dir, l, o.For)
			if err != nil {
				return inFlags(err)
			}
			return a.afterVolume(cmd.Context(), volumes, made)
		},
	}
	o.RegisterLimits(cmd.Flags())
	return cmd
}

func newVolumeSet(a *app) *cobra.Command {
	var o cli.Volume
	cmd := &cobra.Command{
		Use:   "set NAME LIMITS",
		Short: "Change the limit of a volume",
		Long: "Change the limit of a volume. Only the rates that you name change; max removes a limit. --for gives the limit to one\n" +
			"more target.",
		Example: "  weir volume set data --write 20MB/s",
		Args:    oneVolume,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := o.Limit()
			if err != nil {
				return err
			}
			if l.IsZero() && len(o.For) == 0 {
				return cli.Usagef("volume set %s: no limit is named; add --read, --write, --read-iops or --write-iops", args[0])
			}
			return a.volumeSet(cmd.Context(), args[0], l, o)
		},
	}
	o.RegisterLimits(cmd.Flags())
	return cmd
}

func (a *app) volumeSet(ctx context.Context, what string, l limit.Limit, o cli.Volume) error {
	volumes, err := a.openVolumes()
	if err != nil {
		return err
	}
	was, err := volumes.Find(what)
	if err != nil {
		return err
	}
	if err := o.ForLimited(was.Limit.Overlay(l)); err != nil {
		return err
	}
	if a.dry {
		return a.shown("volume")(volumes.SetSteps(ctx, was.Name, l, o.For))
	}
	made, err := volumes.Set(ctx, was.Name, l, o.For)
	if err != nil {
		return inFlags(err)
	}
	if !made.Up {
		a.out.Say("volume %s is down; the limit applies once it is up", made.Name)
		return a.reportVolumes(made.Volume)
	}
	text.VolumeMade(&a.out, made)
	if err := a.limitTargets(ctx, volumes, made.Volume, made.Limit.Overlay(l)); err != nil {
		return fmt.Errorf("volume %s: not all its targets (--for) are limited: %w", made.Name, err)
	}
	return a.reportVolumes(made.Volume)
}

func newVolumeResize(a *app) *cobra.Command {
	var o cli.Volume
	cmd := &cobra.Command{
		Use:     "resize NAME --size SIZE",
		Short:   "Make a volume larger while it is in use",
		Example: "  weir volume resize data --size 20GiB",
		Args:    oneVolume,
		RunE: func(cmd *cobra.Command, args []string) error {
			size, err := o.Size("resize", args[0])
			if err != nil {
				return err
			}
			volumes, err := a.openVolumes()
			if err != nil {
				return err
			}
			if a.dry {
				return a.shown("volume")(volumes.ResizeSteps(cmd.Context(), args[0], size))
			}
			v, err := volumes.Resize(cmd.Context(), args[0], size)
			if err != nil {
				return err
			}
			a.out.Say("volume %s has %s now", v.Name, limit.FormatMeasured(float64(size)))
			return a.reportVolumes(v)
		},
	}
	o.RegisterSize(cmd.Flags())
	return cmd
}
