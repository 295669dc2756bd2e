package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newRestore(a *app) *cobra.Command {
	var atBoot, dryRun bool
	cmd := &cobra.Command{
		Use:   "restore [TARGET]...",
		Short: "Set saved limits again after a restart",
		Long: "Set saved limits again on containers that have been restarted. weir set --persist saves a limit in " + keep.SavedDir + " if\n" +
			"neither systemd nor the container's owner can keep it (cgroup v1, Docker's cgroupfs driver, containerd).\n\n" +
			"Without a target, weir restores all saved limits, and skips containers that do not run. If a container's owner does\n" +
			"not know the container, weir keeps the saved limit until weir clear. --at-boot has systemd run weir restore at each\n" +
			"boot and at each start of Docker, Podman and containerd; --at-boot=false ends that.",
		Example: "  weir restore\n  weir restore docker:web\n  weir restore --at-boot",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if cmd.Flags().Changed("at-boot") {
				if len(args) > 0 || dryRun {
					return cli.Usagef("restore --at-boot: it restores all, and takes no target and no --dry-run")
				}
				if !atBoot {
					return a.restoreNotAtBoot(ctx)
				}
				if err := a.restoreAtBoot(ctx); err != nil {
					return err
				}
			}
			return a.restore(ctx, args, dryRun)
		},
	}
	cmd.Flags().BoolVar(&atBoot, "at-boot", false, "have systemd do this at each boot")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print each file and line that would be written, and change nothing")
	return cmd
}

func (a *app) restoreAtBoot(ctx context.Context) error {
	program, err := ownPath()
	if err != nil {
		return err
	}
	if err := a.boot("restore --at-boot").Install(ctx, map[string]string{keep.RestoreUnit: dropin.RestoreText(program)}); err != nil {
		return err
	}
	a.out.Say("systemd sets saved limits again at boot, and when Docker, Podman or containerd starts: %s", keep.UnitDir+keep.RestoreUnit)
	return nil
}

func (a *app) restoreNotAtBoot(ctx context.Context) error {
	if err := a.boot("restore --at-boot=false").Remove(ctx, keep.RestoreUnit); err != nil {
		return err
	}
	a.out.Say("systemd no longer sets saved limits at boot")
	if !a.out.JSON {
		return nil
	}
	return a.out.Document(api.RestoreOf(nil))
}

func (a *app) restore(ctx context.Context, specs []string, dryRun bool) error {
	manager, err := a.limits()
	if err != nil {
		return err
	}
	all, err := manager.Restore(ctx, limiting.Restore{Targets: specs, Dry: dryRun, Foreign: !a.out.Quiet})
	if all == nil {
		return err
	}
	errs := []error{err}
	lines := *a
	lines.out.JSON = false // what is said of a limit is not in the document
	var steps []hold.Step
	for i := range all {
		r := &all[i]
		for _, p := range r.Previews {
			lines.sayPreview(p)
			steps = append(steps, p.Steps...)
		}
		for _, one := range r.Results {
			a.sayApart(one, nil)
		}
		r.Err = text.Error(r.Err)
		switch r.State {
		case limiting.Stopped:
			a.out.Say("%s is not running; run weir restore when it is", r.Name)
		case limiting.Unknown:
			a.out.Say("the owner of %s does not know it; weir keeps the saved limit until weir clear %s", r.Name, r.Target)
		case limiting.Failed:
			errs = append(errs, r.Err)
		}
	}
	if len(all) == 0 && err == nil {
		a.out.Say("no limit is saved; weir set --persist saves the limit of a container")
	}
	if dryRun {
		errs = append(errs, a.dryRun("restore", steps))
	} else if a.out.JSON {
		errs = append(errs, a.out.Document(api.RestoreOf(all)))
	}
	return errors.Join(errs...)
}
