package limiting

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A clearing is a prepared clear of a target that has a group.
type clearing struct {
	m      Manager
	target targets.Target
	keeper keep.Keeper     // of the target, or of the container whose group it is
	locks  bool            // what is kept needs a lock
	on     bool            // devices were named
	only   []blkdev.Number // that they lead to; none: all
	places []place.Placed  // with limits in force
	plan   hold.Plan
	notes  []note.Note
}

// PrepareClear finds a target to remove the limits of, on the named places, or all. It includes
// limits that are kept, also of a target that is not running. It is no error if there are none.
// whole says that the limits of a group may be removed that other processes are in too.
func (m Manager) PrepareClear(ctx context.Context, spec string, on []string, whole bool) (Change, error) {
	t, err := m.Host.Target(ctx, spec)
	if err != nil && len(on) == 0 {
		return m.prepareForget(ctx, spec, err)
	}
	if err != nil {
		return nil, err
	}
	if err := Alone(t, whole); err != nil {
		return nil, err
	}
	its := keep.Account(ctx, m.Host, t)
	c := &clearing{m: m, target: t, keeper: keep.Of(m.Host, its, t.Group.Hierarchy().Version), locks: its.Lasting != "", on: len(on) > 0}
	if c.only, err = m.Host.DevicesOf(ctx, on); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *clearing) Steps(ctx context.Context) (Preview, error) {
	edit, err := c.forget(ctx)
	if err == nil {
		err = c.find(ctx)
	}
	if err != nil {
		return Preview{}, err
	}
	was, err := c.m.Host.JobOf(c.target.Group)
	if err != nil {
		return Preview{}, err
	}
	steps, err := keep.StepsOf(ctx, slices.Concat(edit.Before, []keep.Action{&liftRules{c: c, was: was}}, edit.After))
	return Preview{Notes: c.notes, Steps: steps}, err
}

// forget begins the plan, with what is kept.
func (c *clearing) forget(ctx context.Context) (keep.Edit, error) {
	c.plan = c.m.planFor(c.target, nil)
	c.plan.Note = func(text string) { c.notes = append(c.notes, note.Infof("systemd-names", "%s", text)) }
	c.plan.Lift = true
	edit, err := c.keeper.Forget(ctx, c.only, &c.plan)
	c.notes = append(c.notes, edit.Notes...)
	return edit, err
}

// find adds the limits in force to the plan.
func (c *clearing) find(ctx context.Context) error {
	rules, err := c.target.Group.RulesIfAny()
	if err != nil {
		return err
	}
	c.places = nil
	for _, r := range rules {
		if c.on && !slices.Contains(c.only, r.Device) {
			continue
		}
		var lifted limit.Limit
		for _, k := range limit.Keys {
			if _, bound := r.Limit.Get(k).Number(); bound {
				lifted = lifted.With(k, limit.Unlimited)
			}
		}
		c.places = append(c.places, place.Placed{Device: c.m.Host.Device(ctx, r.Device), Limit: lifted})
	}
	c.plan.Changes = place.Changes(c.places)
	c.m.goPast(ctx, &c.plan)
	return nil
}

func (c *clearing) Apply(ctx context.Context) (Result, error) {
	r, err := c.apply(ctx)
	r.Noted = c.notes
	return r, err
}

func (c *clearing) apply(ctx context.Context) (Result, error) {
	if c.locks {
		unlock, err := keep.Lock(ctx, c.m.Host, false)
		if err != nil {
			return Result{}, err
		}
		defer unlock()
	}
	locked, err := c.m.Host.Lock(ctx, c.target)
	if err != nil {
		return Result{}, err
	}
	defer locked.Unlock()
	edit, err := c.forget(ctx)
	if err != nil {
		return Result{}, err
	}
	was, err := c.m.Host.JobOf(c.target.Group)
	if err != nil {
		return Result{}, err
	}
	// An engine that will store other limits is told first, because it may write rules then.
	told, err := keep.DoAll(ctx, append(edit.Before, &liftRules{c, locked, was}))
	if err != nil {
		return Result{}, err
	}
	// The limits are lifted: if something goes on keeping them, that is no reason to set them again.
	forgotten, err := keep.DoAll(ctx, edit.After)
	if err != nil {
		return Result{}, err
	}
	r := resultOf(c.target)
	r.Cleared = c.places
	r.Notes = c.said(append(forgotten, told...))
	return r, nil
}

// said tells what was done, with what the keepers did.
func (c *clearing) said(kept []note.Note) (notes []note.Note) {
	t := c.target
	if len(c.places) == 0 && c.plan.File == nil && len(kept) == 0 {
		notes = append(notes, note.Infof("no-limit", "%s has no limit here", resultOf(t).Describe()))
	}
	for _, n := range kept {
		n.Text = t.String() + ": " + n.Text
		notes = append(notes, n)
	}
	for _, p := range c.places {
		notes = append(notes, note.Infof("cleared", "%s: removed the limit on %s (%s)", t, p.Device.Node, p.Device.Number))
	}
	if c.plan.File != nil && c.plan.File.Text == "" {
		notes = append(notes, note.Infof("cleared", "%s: removed %s, which set its limits at each start", t, c.plan.File.Path))
	}
	return notes
}

// liftRules removes the rules in force, and has the pacer hold what is left of them.
type liftRules struct {
	c      *clearing
	locked hold.Locked // of a dry run: nothing
	was    *pacer.Job  // what the pacer holds until then; nil: nothing
}

func (a *liftRules) Steps(ctx context.Context) ([]hold.Step, error) {
	c := a.c
	rules, err := c.target.Group.RulesIfAny()
	return append(c.m.Host.Holder().Steps(ctx, c.plan), paceLeft(c.target.Group, a.was, rules, c.plan.Changes)...), err
}

func (a *liftRules) Do(ctx context.Context) (done keep.Done, err error) {
	c := a.c
	if err := c.find(ctx); err != nil {
		return done, err
	}
	if was := a.was; was != nil {
		c.plan.Pacing = &hold.Pacing{Before: was.Pacing(), Do: func() error {
			notes, err := c.m.repace(c.target, was, was.Pacing())
			c.notes = append(c.notes, notes...)
			if none := (*pacer.StartError)(nil); errors.As(err, &none) { // nobody goes without what is to be cleared for that
				c.notes = append(c.notes, note.Warningf("no-pacer", "buffered writes of %s are not held any more: %v", c.target, err))
				err = c.m.Host.Pacer().Remove(was.Limited)
			}
			return err
		}}
	}
	return done, a.locked.Apply(ctx, c.plan)
}

// A forgetting is a prepared clear of a target that is not running.
type forgetting struct {
	m     Manager
	spec  string
	found error
	left  keep.Left
}

// prepareForget finds what is kept for a target that could not be resolved.
func (m Manager) prepareForget(ctx context.Context, spec string, found error) (Change, error) {
	f := &forgetting{m: m, spec: spec, found: found}
	return f, f.look(ctx)
}

func (f *forgetting) look(ctx context.Context) (err error) {
	f.left, err = keep.OfStopped(ctx, f.m.Host, f.spec, f.found)
	return err
}

func (f *forgetting) Steps(ctx context.Context) (Preview, error) {
	steps, err := keep.StepsOf(ctx, f.left.Actions)
	return Preview{Steps: steps}, err
}

func (f *forgetting) Apply(ctx context.Context) (Result, error) {
	io, err := f.m.Host.IO()
	if err != nil {
		return Result{}, err
	}
	if f.left.Writes {
		if err := io.Writable(); err != nil && f.left.Unwritable != nil {
			return Result{}, f.left.Unwritable
		} else if err != nil {
			return Result{}, err
		}
		unlock, err := keep.Lock(ctx, f.m.Host, false)
		if err != nil {
			return Result{}, err
		}
		defer unlock()
		if err := f.look(ctx); err != nil { // again, now that it is locked
			return Result{}, err
		}
	}
	if _, err := keep.DoAll(ctx, f.left.Actions); err != nil {
		return Result{}, err
	}
	return Result{Target: f.left.Target, Version: io.Version, Owner: f.left.Owner,
		Notes: []note.Note{note.Infof("cleared", "%s is not running; removed the limit saved for its next start", f.left.Target)}}, nil
}
