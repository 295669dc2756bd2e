package main

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/kept"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/containerd"
)

// keeperOf is what limits are kept for on a target's account: itself, or the container
// whose group it is, if it was named by that group, by its unit or by a process.
func (a *app) keeperOf(ctx context.Context, t target.Target) target.Target {
	if t.Lasting != "" {
		return t
	}
	if kind, id, is := target.ContainerOf(t.Group); is {
		if c, err := a.target(ctx, kind+":"+id); err == nil {
			t.Record = c.Record
		}
		t.Kind, t.Name, t.Lasting = kind, id, kind+":"+id
		return t
	}
	all, _ := kept.List(a.root) // one that cannot be read is another's
	for _, r := range all {
		name, is := strings.CutPrefix(r.Target, "containerd:")
		namespace, id, _ := strings.Cut(name, "/")
		if is && containerd.IsGroupOf(t.Group.Path(), namespace, id) {
			t.Kind, t.Name, t.Lasting = "containerd", name, r.Target
		}
	}
	return t
}

// clearKept makes a target's owner store no limits, if the owner is a program that can be
// asked: libvirt. It returns for how many devices the owner stored any.
func (a *app) clearKept(ctx context.Context, t target.Target, only []blkdev.Number) (int, error) {
	if t.Kind != "vm" {
		return 0, nil
	}
	config, err := a.machines(t.Group.Hierarchy()).ConfigOf(t.Name)
	if err != nil {
		return 0, err
	}
	return a.forgetDomain(ctx, config, only)
}

// clearSteps is what clear would do.
func (a *app) clearSteps(ctx context.Context, c clearing) ([]hold.Step, error) {
	steps, err := a.tellSteps(c.forgets)
	if err != nil {
		return nil, err
	}
	steps = append(steps, a.holder().Steps(ctx, c.plan)...)
	if len(c.on) == 0 {
		other, err := a.otherKept(c.keeper)
		if err != nil {
			return nil, err
		}
		for _, f := range other {
			steps = append(steps, hold.Step{File: f.Path})
		}
		steps = append(steps, a.forgetSteps(c.plan)...)
	}
	if c.t.Kind != "vm" || a.root != "/" { // a copy's libvirt cannot be asked
		return steps, nil
	}
	more, err := a.forgetDomainSteps(ctx, c.t, c.only)
	return append(steps, more...), err
}

// forget makes systemd store no rate of a unit over boots, not even a rate that is not in force
// now, because it was removed until the next boot or its device is gone. It reports whether
// systemd still stored any.
func (a *app) forget(ctx context.Context, plan hold.Plan) (bool, error) {
	if plan.Unit == "" || !plan.Persist {
		return false, nil
	}
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	keys, err := conn.Kept(plan.Unit)
	if err != nil || len(keys) == 0 {
		return false, err
	}
	return true, conn.Forget(ctx, plan.Unit, keys)
}

// forgetSteps are the files that forget removes, except those of rates that the plan removes.
func (a *app) forgetSteps(plan hold.Plan) (steps []hold.Step) {
	if plan.Unit == "" || !plan.Persist {
		return nil
	}
	kept, err := systemd.Kept(a.root, plan.Unit)
	if err != nil {
		return nil // unpersist has just read them
	}
	for _, d := range kept {
		if !slices.ContainsFunc(plan.Changes, func(c hold.Change) bool { return c.Limit.Get(d.Key) == limit.Unlimited }) {
			steps = append(steps, hold.Step{File: d.Path})
		}
	}
	return steps
}
