package main

import (
	"context"
	"errors"
	"io/fs"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

// interruptible has Ctrl-C and its like end a change in its middle, which is then taken back.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
}

func newVolumeList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List volumes",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.ownVolumes("volume list"); err != nil {
				return err
			}
			return a.volumeList(cmd.Context())
		},
	}
}

func (a *app) volumeList(ctx context.Context) error {
	if err := a.open(); err != nil {
		return err
	}
	all, err := space.List(ctx, a.host)
	if errors.Is(err, fs.ErrPermission) {
		return errors.New("volume list: permission denied (run weir as root)")
	}
	if len(all) == 0 && err != nil || a.out.JSON {
		return errors.Join(err, a.reportVolumes(all...))
	}
	if len(all) == 0 {
		a.out.Say("there is no volume; weir volume create makes one")
		return nil
	}
	text.Volumes(&a.out, all)
	return err
}

func newVolumeUp(a *app) *cobra.Command {
	var atBoot, accept bool
	cmd := &cobra.Command{
		Use:   "up [NAME]...",
		Short: "Mount volumes and set their limits",
		Long: "Mount volumes that are down and set their limits. For volumes that are already up, set their limits again. Without a\n" +
			"name, do this for all volumes. --at-boot has systemd do this at each boot, before Docker, containerd and libvirt\n" +
			"start. Once those have started, systemd also limits the targets named with --for. --at-boot=false ends that.",
		Example: "  weir volume up\n  weir volume up --at-boot",
		RunE: func(cmd *cobra.Command, args []string) error {
			volumes, err := a.openVolumes()
			if err != nil {
				return err
			}
			if accept && len(args) != 1 {
				return cli.Usagef("volume up --accept-file: name the one volume whose file was replaced; %d are named", len(args))
			}
			if a.dry && (accept || cmd.Flags().Changed("at-boot")) {
				return cli.Usagef("volume up --dry-run: leave out --at-boot and --accept-file")
			}
			if a.dry {
				return a.volumeUpShown(cmd.Context(), volumes, args)
			}
			if !cmd.Flags().Changed("at-boot") {
				return a.volumeUp(cmd.Context(), volumes, args, accept)
			}
			if !atBoot {
				return a.notAtBoot(cmd.Context())
			}
			if err := a.atBoot(cmd.Context()); err != nil {
				return err
			}
			return a.volumeUp(cmd.Context(), volumes, args, false)
		},
	}
	cmd.Flags().BoolVar(&accept, "accept-file", false, "accept the file that is there now as the volume's own, for example after a restore from a backup")
	cmd.Flags().BoolVar(&atBoot, "at-boot", false, "have systemd do this at each boot")
	return cmd
}

func (a *app) volumeUpShown(ctx context.Context, volumes space.Volumes, names []string) error {
	names, err := volumes.Named(names)
	errs, steps := []error{err}, []hold.Step{}
	for _, name := range names {
		more, err := volumes.UpSteps(ctx, name)
		errs, steps = append(errs, err), append(steps, more...)
	}
	return errors.Join(errors.Join(errs...), a.dryRun("volume", steps))
}

func (a *app) volumeUp(ctx context.Context, volumes space.Volumes, names []string, accept bool) error {
	names, err := volumes.Named(names)
	errs := []error{err}
	ctx, stop := interruptible(ctx)
	defer stop()
	var all []space.Volume
	for _, name := range names {
		made, err := volumes.Up(ctx, name, accept)
		if made.Name != "" {
			all = append(all, made.Volume)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		text.VolumeMade(&a.out, made)
		if err := a.limitTargets(ctx, volumes, made.Volume, made.Limit); err != nil { // it may start later
			a.out.Say("warning: volume %s: %v; when that is mended: weir volume up %s", made.Name, err, made.Name)
		}
	}
	return errors.Join(errors.Join(errs...), a.reportVolumes(all...))
}

func newVolumeDown(a *app) *cobra.Command {
	return a.onVolume(&cobra.Command{Use: "down NAME", Short: "Unmount a volume that is not in use"}, space.Volumes.DownSteps,
		func(ctx context.Context, volumes space.Volumes, what string) error {
			v, err := volumes.Down(ctx, what)
			if err != nil {
				return err
			}
			a.out.Say("volume %s is down", v.Name)
			return a.reportVolumes(v)
		})
}

func newVolumeDelete(a *app) *cobra.Command {
	return a.onVolume(&cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a volume that is down, with all files on it",
		Long: "Delete a volume that is down, with all files on it. For an adopted mount, weir removes only the limit and restores the\n" +
			"device's former settings. Limits that --for gave to targets stay until weir clear.",
	}, space.Volumes.DeleteSteps, func(ctx context.Context, volumes space.Volumes, what string) error {
		v, err := volumes.Delete(ctx, what)
		if err != nil {
			return err
		}
		if v.Adopted() {
			a.out.Say("volume %s: %s is as it was before weir", v.Name, v.Mount)
		} else {
			a.out.Say("volume %s is deleted", v.Name)
		}
		return errors.Join(a.refreshBoot(ctx), a.reportVolumes())
	})
}

func newVolumeForget(a *app) *cobra.Command {
	return a.onVolume(&cobra.Command{
		Use:   "forget NAME",
		Short: "Remove a volume from weir's records, without touching files",
		Long: "Remove a volume that is down from weir's records, without touching any file. Use this if the volume's file is gone, or\n" +
			"if you want to keep the file as it is.",
	}, space.Volumes.ForgetSteps, func(ctx context.Context, volumes space.Volumes, what string) error {
		v, err := volumes.Forget(ctx, what)
		if err != nil {
			return err
		}
		a.out.Say("volume %s is forgotten; its file, if there is one, is %s", v.Name, v.Image)
		return errors.Join(a.refreshBoot(ctx), a.reportVolumes())
	})
}
