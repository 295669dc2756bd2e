package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/limit"
)

func newClear(a *app) *cobra.Command {
	var limits cli.Limits
	var whole, dryRun bool
	cmd := &cobra.Command{
		Use:     "clear TARGET [--on PATH|DEVICE]...",
		Short:   "Lift the limits of what runs",
		Long:    "Lift all limits of a target, or with --on those on some devices, also what weir set --persist keeps, even of a unit, a container or a domain that does not run. A group without limits is left as it is, and that is no error.",
		Example: "  weir clear pid:4711\n  weir clear cgroup:/batch --on /data",
		Args:    oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.clear(cmd.Context(), args[0], limits.Places(), whole, dryRun)
		},
	}
	limits.RegisterOn(cmd.Flags())
	cmd.Flags().BoolVar(&whole, "whole-cgroup", false, "also where other processes share the group of a pid")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print each file and line that would be written, and do nothing")
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

func (a *app) clear(ctx context.Context, spec string, on []string, whole, dryRun bool) error {
	t, err := a.target(ctx, spec)
	if err != nil && !dryRun && len(on) == 0 {
		return a.clearStopped(ctx, spec, err)
	}
	if err != nil {
		return err
	}
	if err := alone(t, whole); err != nil {
		return err
	}
	only, err := a.devicesNamed(ctx, on)
	if err != nil {
		return err
	}
	rules, err := t.Group.RulesIfAny()
	if err != nil {
		return err
	}
	var places []placed
	for _, r := range rules {
		if len(on) > 0 && !slices.Contains(only, r.Device) {
			continue
		}
		var lifted limit.Limit
		for _, k := range limit.Keys {
			if _, bound := r.Limit.Get(k).Number(); bound {
				lifted = lifted.With(k, limit.Unlimited)
			}
		}
		places = append(places, placed{device: a.device(ctx, r.Device), Change: hold.Change{Device: r.Device, Limit: lifted}})
	}
	plan := a.planFor(t, changes(places))
	keeper := a.keeperOf(t)
	if keeper.Lasting != "" && !dryRun {
		unlock, err := a.lockKept(false)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := a.unpersist(ctx, keeper, &plan, only); err != nil {
		return err
	}
	if dryRun {
		steps, err := a.clearSteps(ctx, keeper, plan, only)
		if err != nil {
			return err
		}
		return a.dryRun("clear", steps)
	}
	if len(places) > 0 || plan.File != nil {
		if err := a.holder().Apply(ctx, plan); err != nil {
			return err
		}
	}
	if err := a.repace(t, false); err != nil {
		return err
	}
	forgotten, other := false, false
	if len(on) == 0 {
		if other, err = a.keepNoOther(ctx, keeper); err != nil {
			return err
		}
		if forgotten, err = a.forget(ctx, plan); err != nil {
			return err
		}
	}
	kept, err := a.clearKept(ctx, t, only)
	if err != nil {
		return err
	}
	if len(places) == 0 && forgotten {
		a.out.Say("%s: systemd keeps no limit of it any more", t)
	}
	if len(places) == 0 && plan.File == nil && kept == 0 && !forgotten && !other {
		a.out.Say("%s has no limit here", describe(t))
	}
	if other {
		a.out.Say("%s: what was kept for its start by another driver or version of cgroups is lifted", t)
	}
	if kept > 0 {
		a.out.Say("%s: libvirt keeps no limit of it any more", t)
	}
	for _, p := range places {
		a.out.Say("%s: no limit on %s (%s) any more", t, p.device.Node, p.device.Number)
	}
	if plan.File != nil && plan.File.Text == "" {
		a.out.Say("%s: removed %s, which kept its limits for each start", t, plan.File.Path)
	}
	return a.reportSet("clear", t, places)
}

func (a *app) devicesNamed(ctx context.Context, on []string) ([]blkdev.Number, error) {
	var numbers []blkdev.Number
	for _, place := range on {
		chain, err := blkdev.New(a.root).Resolve(ctx, place)
		if err != nil {
			return nil, err
		}
		for _, d := range chain.Devices {
			numbers = append(numbers, d.Number)
		}
	}
	return numbers, nil
}

// device reads what sysfs says of a device; one that is gone keeps its number.
func (a *app) device(ctx context.Context, n blkdev.Number) blkdev.Device {
	d, err := blkdev.New(a.root).Device(ctx, n)
	var gone *blkdev.NotFoundError
	if errors.As(err, &gone) || err != nil {
		return blkdev.Device{Number: n, Name: n.String(), Node: n.String()}
	}
	return d
}
