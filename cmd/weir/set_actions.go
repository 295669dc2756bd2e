package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/target"
)

// An action is one thing that weir set does: a dry run prints its steps, and else it is done.
// There is one list of them, so that both are the same.
type action struct {
	steps func(context.Context) ([]hold.Step, error) // they may take questions to ask
	// do does the action. undo takes it back, and is nil if that is not needed.
	do func(context.Context) (undo func() error, err error)
}

func stepsOf(ctx context.Context, actions []action) ([]hold.Step, error) {
	var steps []hold.Step
	for _, one := range actions {
		more, err := one.steps(ctx)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

// doAll does one action after the other. What was done before a failure is taken back.
func doAll(ctx context.Context, actions []action) error {
	var undos []func() error
	for _, one := range actions {
		undo, err := one.do(ctx)
		if err != nil {
			for i := len(undos) - 1; i >= 0; i-- {
				err = errors.Join(err, undos[i]())
			}
			return err
		}
		if undo != nil {
			undos = append(undos, undo)
		}
	}
	return nil
}

// setActions puts limits into force and, with persist, saves them, in this order. It asks the
// pacer while the group is still locked. If the pacer is not available, it takes the limits
// back.
func (a *app) setActions(ctx context.Context, locked hold.Locked, t target.Target, d *place.Decision, plan hold.Plan, persist bool) ([]action, error) {
	var all []action
	if persist {
		tell, err := a.engineAction(t, *d)
		if err != nil {
			return nil, err
		}
		all = append(all, tell...)
	}
	was, err := a.jobOf(t.Group)
	if err != nil {
		return nil, err
	}
	if was != nil || d.Paced != nil || d.Escapes != nil {
		plan.Pacing = &hold.Pacing{Before: was.Pacing(), Do: func() error { return a.repaceAs(t, was, d) }}
	}
	steps := func(ctx context.Context) ([]hold.Step, error) {
		pace, err := a.repaceSteps(t, was, *d)
		return append(a.holder().Steps(ctx, plan), pace...), err
	}
	all = append(all, action{steps, func(ctx context.Context) (func() error, error) {
		err := a.enforce(ctx, locked, t, plan)
		if err != nil {
			if there, unread := t.Group.Exists(); unread == nil && !there {
				err = fmt.Errorf("set %s: it has ended, so nothing is limited: %w", t, err)
			}
		}
		return nil, err
	}})
	if !persist {
		return all, nil
	}
	keep, err := a.keepActions(ctx, t, *d, plan)
	for _, k := range keep {
		all = append(all, action{k.steps, func(ctx context.Context) (func() error, error) {
			undo, err := k.do(ctx)
			if err != nil {
				err = fmt.Errorf("set %s: the limit is in force now, but a restart loses it: %w", t, err)
			}
			return undo, err
		}})
	}
	return all, err
}

// engineAction has a container's engine keep limits, before they are put into force: it may
// write rules when it is told.
func (a *app) engineAction(t target.Target, d place.Decision) ([]action, error) {
	keeps, err := engineKeeps(t, d.Places)
	if err != nil || keeps == nil {
		return nil, err
	}
	steps := func(context.Context) ([]hold.Step, error) { return a.tellSteps(keeps) }
	return []action{{steps, func(ctx context.Context) (func() error, error) {
		if err := t.Group.Hierarchy().Writable(); err != nil {
			return nil, err
		}
		return a.tell(ctx, keeps)
	}}}, nil
}

// keepActions follow once the limits are in force: they tell the programs that save the limits,
// and remove files that would set other limits at the next start.
func (a *app) keepActions(ctx context.Context, t target.Target, d place.Decision, plan hold.Plan) ([]action, error) {
	if t.Kind == "vm" {
		return []action{{
			func(ctx context.Context) ([]hold.Step, error) { return a.keepDomainSteps(ctx, t, d.Places) },
			func(ctx context.Context) (func() error, error) { return nil, a.keepDomain(ctx, t, d.Places) },
		}}, nil
	}
	var files []hold.File
	if plan.Unit != "" && plan.File != nil && !plan.File.Own {
		removed, err := a.ofRemoved(ctx, t)
		if err != nil {
			return nil, err
		}
		files = removed
	}
	other, err := a.otherKept(t)
	if err != nil {
		return nil, err
	}
	var all []action
	for _, f := range append(files, other...) {
		all = append(all, action{
			func(context.Context) ([]hold.Step, error) { return []hold.Step{{File: f.Path}}, nil },
			func(ctx context.Context) (func() error, error) { return nil, a.removeKept(ctx, f) },
		})
	}
	return all, nil
}

// sayUnpaced tells that what keeps a limit starts no pacer with it.
func (a *app) sayUnpaced(t target.Target, d place.Decision, plan hold.Plan, persist bool) {
	if !persist || plan.File != nil && (plan.Unit == "" || plan.File.Own) {
		return
	}
	v := t.Group.Hierarchy().Version
	switch { // as long as the pacer runs it holds the next group of what systemd keeps a limit for
	case d.Paced == nil && d.Escapes == nil:
	case v == cgroupfs.V2 && (t.Kind == "unit" || keepsScope(t, v)):
		a.out.Say("note: after a boot nothing starts the pacer; weir set %s again does", t)
	case d.Paced != nil:
		a.out.Say("warning: after a restart of %s nothing starts the pacer; to hold buffered writes again, repeat weir set %s", t, t)
	case d.Escapes != nil:
		a.out.Say("note: after a restart of %s nothing starts the pacer; to hold writes to other groups' files again, repeat weir set %s", t, t)
	}
}
