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
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/engine"
)

func newClear(a *app) *cobra.Command {
	var limits cli.Limits
	var whole, dryRun bool
	cmd := &cobra.Command{
		Use:   "clear TARGET [--on PATH|DEVICE]...",
		Short: "Remove limits",
		Long: "Remove all limits of a target, or with --on only those on some devices. This includes limits that weir set --persist\n" +
			"saved, even if the unit, container or domain is not running. weir also removes the limits that Docker itself stores,\n" +
			"if Docker's API is 1.55 or later. It is no error if the target has no limits.",
		Example: "  weir clear pid:4711\n  weir clear cgroup:/batch --on /data",
		Args:    oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.clear(cmd.Context(), args[0], limits.Places(), whole, dryRun)
		},
	}
	limits.RegisterOn(cmd.Flags())
	cmd.Flags().BoolVar(&whole, "whole-cgroup", false, "also if other processes share the cgroup of a pid")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print each file and line that would be written, and change nothing")
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

// A clearing is what weir clear is about.
type clearing struct {
	t, keeper target.Target
	on        []string
	only      []blkdev.Number // that on leads to; none: all
	places    []place.Placed  // with limits in force
	plan      hold.Plan
	forgets   *engine.Update // nil: the container's engine has nothing to forget
}

func (a *app) clear(ctx context.Context, spec string, on []string, whole, dryRun bool) error {
	t, err := a.target(ctx, spec)
	if err != nil && len(on) == 0 {
		return a.clearStopped(ctx, spec, err, dryRun)
	}
	if err != nil {
		return err
	}
	if err := alone(t, whole); err != nil {
		return err
	}
	c := clearing{t: t, keeper: a.keeperOf(ctx, t), on: on}
	if c.only, err = a.devicesNamed(ctx, on); err != nil {
		return err
	}
	if c.forgets, err = engineForgets(c.keeper.Lasting, c.keeper.Record, c.only); err != nil {
		return err
	}
	if dryRun {
		if err := a.planClear(ctx, &c); err != nil {
			return err
		}
		steps, err := a.clearSteps(ctx, c)
		if err != nil {
			return err
		}
		return a.dryRun("clear", steps)
	}
	if c.keeper.Lasting != "" {
		unlock, err := a.lockKept(ctx, false)
		if err != nil {
			return err
		}
		defer unlock()
	}
	locked, err := a.lock(ctx, c.t)
	if err != nil {
		return err
	}
	defer locked.Unlock()
	if err := a.lift(ctx, locked, &c); err != nil {
		return err
	}
	return a.forgetAll(ctx, c)
}

// planClear finds the limits to remove.
func (a *app) planClear(ctx context.Context, c *clearing) error {
	rules, err := c.t.Group.RulesIfAny()
	if err != nil {
		return err
	}
	for _, r := range rules {
		if len(c.on) > 0 && !slices.Contains(c.only, r.Device) {
			continue
		}
		var lifted limit.Limit
		for _, k := range limit.Keys {
			if _, bound := r.Limit.Get(k).Number(); bound {
				lifted = lifted.With(k, limit.Unlimited)
			}
		}
		c.places = append(c.places, place.Placed{Device: a.device(ctx, r.Device), Limit: lifted})
	}
	c.plan = a.planFor(c.t, place.Changes(c.places))
	return a.unpersist(ctx, c.keeper, &c.plan, c.only)
}

// lift removes the limits in force. It tells an engine that will store other limits first,
// because the engine may write rules then.
func (a *app) lift(ctx context.Context, locked hold.Locked, c *clearing) error {
	was, err := a.jobOf(c.t.Group)
	if err != nil {
		return err
	}
	undo, err := a.tell(ctx, c.forgets)
	if err != nil {
		return err
	}
	if err = a.planClear(ctx, c); err == nil {
		if was != nil { // what is left of its limits, or nothing
			c.plan.Pacing = &hold.Pacing{Before: was.Pacing(), Do: func() error { return a.repace(c.t, was, was.Pacing()) }}
		}
		err = locked.Apply(ctx, c.plan)
	}
	if err != nil {
		return errors.Join(err, undo())
	}
	return nil
}

// forgetAll ends what keeps limits besides, and reports what was done.
func (a *app) forgetAll(ctx context.Context, c clearing) (err error) {
	forgotten, other, t := false, false, c.t
	if len(c.on) == 0 {
		if other, err = a.keepNoOther(ctx, c.keeper); err != nil {
			return err
		}
		if forgotten, err = a.forget(ctx, c.plan); err != nil {
			return err
		}
	}
	kept, err := a.clearKept(ctx, t, c.only)
	if err != nil {
		return err
	}
	if len(c.places) == 0 && forgotten {
		a.out.Say("%s: systemd no longer keeps a limit for it", t)
	}
	if len(c.places) == 0 && c.plan.File == nil && kept == 0 && !forgotten && !other && c.forgets == nil {
		a.out.Say("%s has no limit here", describe(t))
	}
	if other {
		a.out.Say("%s: removed the limit saved for its start under another cgroup driver or version", t)
	}
	if kept > 0 {
		a.out.Say("%s: libvirt no longer keeps a limit for it", t)
	}
	if c.forgets != nil {
		a.out.Say("%s: %s no longer keeps a limit for it", t, c.keeper.Record.By)
	}
	for _, p := range c.places {
		a.out.Say("%s: removed the limit on %s (%s)", t, p.Device.Node, p.Device.Number)
	}
	if c.plan.File != nil && c.plan.File.Text == "" {
		a.out.Say("%s: removed %s, which set its limits at each start", t, c.plan.File.Path)
	}
	return a.reportSet("clear", t, unheld(c.places))
}

func (a *app) devicesNamed(ctx context.Context, on []string) ([]blkdev.Number, error) {
	return a.host.DevicesOf(ctx, on)
}

func (a *app) device(ctx context.Context, n blkdev.Number) blkdev.Device {
	return a.host.Device(ctx, n)
}

// unheld are places where nothing is limited any more.
func unheld(all []place.Placed) []place.Expected {
	var list []place.Expected
	for _, p := range all {
		list = append(list, place.Expected{Placed: p})
	}
	return list
}
