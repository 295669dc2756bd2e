package limiting

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A decided set is what a setting comes to with what is in force now.
type decided struct {
	*setting
	keeper  keep.Keeper
	plan    hold.Plan
	what    place.Decision // if nobody asked for the pacer and it is not available, Apply changes it
	actions []keep.Action
}

func (s *setting) Steps(ctx context.Context) (Preview, error) {
	if s.none != nil {
		return Preview{Notes: s.notes}, fmt.Errorf("%s: setting a limit first has systemd make a cgroup for it (BlockIOAccounting=yes); the files to write are not known before that", s.target)
	}
	d, err := s.decide(ctx, hold.Locked{})
	if err != nil {
		return Preview{Notes: s.notes}, err
	}
	steps, err := keep.StepsOf(ctx, d.actions)
	return Preview{Notes: s.notes, Decided: d.what, Steps: steps}, err
}

func (s *setting) Apply(ctx context.Context) (Result, error) {
	r, err := s.apply(ctx)
	r.Noted = s.notes
	return r, err
}

func (s *setting) apply(ctx context.Context) (Result, error) {
	if s.none != nil {
		if err := s.giveGroup(ctx); err != nil {
			return Result{}, err
		}
	}
	t := s.target
	if s.request.Persist && t.Lasting != "" {
		unlock, err := keep.Lock(ctx, s.m.Host, true)
		if err != nil {
			return Result{}, err
		}
		defer unlock()
	}
	locked, err := s.m.Host.Lock(ctx, t)
	if err != nil {
		return Result{}, err
	}
	defer locked.Unlock()
	d, err := s.decide(ctx, locked)
	if err != nil {
		return Result{}, err
	}
	s.notes = append(s.notes, Drain(s.m.Host, t.Group, MemoryOf(t.Group), d.what)...)
	if _, err := keep.DoAll(ctx, d.actions); err != nil {
		return Result{}, err
	}
	r := resultOf(t)
	r.Decided = d.what
	if s.request.Foreign {
		r.Notes = append(r.Notes, s.m.foreign(ctx, t, s.asked, d.what)...)
	}
	if !s.restored {
		r.Notes = append(r.Notes, d.keeper.Lasts(d.plan, s.request.Persist)...)
		r.Notes = append(r.Notes, d.unpaced()...)
	}
	return r, nil
}

// decide reads what is in force, and lists the actions. For Apply the group is locked.
func (s *setting) decide(ctx context.Context, locked hold.Locked) (*decided, error) {
	t := s.target
	d := &decided{setting: s, keeper: s.keeper()}
	var err error
	if d.what, err = s.m.Host.Deciding().Decide(t.Group, false, s.places, cmp.Or(s.request.Hold, limit.HoldAuto)); err != nil {
		return nil, err
	}
	d.plan = s.m.planFor(t, place.Changes(s.places))
	s.m.goPast(ctx, &d.plan)
	d.plan.Keep = s.request.Keep
	d.plan.Note = func(text string) { s.notes = append(s.notes, note.Infof("systemd-names", "%s", text)) }
	var edit keep.Edit
	if s.request.Persist {
		wanted := keep.Wanted{Asked: s.asked, Hold: s.request.Hold, Places: d.what.Places}
		if edit, err = d.keeper.Keep(ctx, wanted, &d.plan); err != nil {
			return nil, err
		}
		if d.what.Paced != nil && s.request.Hold != "" && d.keeper.Paces() != keep.PaceStarts {
			return nil, &keep.Refused{Target: t.String(), Kind: fault.WrongUse,
				Why: "nothing would start the pacer again with this limit", Remedy: fault.Remedy{Do: fault.DropHold}}
		}
	}
	rules := &setRules{decided: d, locked: locked}
	if rules.was, err = s.m.Host.JobOf(t.Group); err != nil {
		return nil, err
	}
	if rules.was != nil || d.what.Paced != nil || d.what.Escapes != nil {
		d.plan.Pacing = &hold.Pacing{Before: rules.was.Pacing(), Do: func() error { return rules.pace() }}
	}
	s.notes = append(s.notes, edit.Notes...)
	d.actions = append(edit.Before, rules)
	for _, a := range edit.After {
		d.actions = append(d.actions, afterRules{a, t})
	}
	return d, nil
}

// unpaced tells that what keeps a limit starts no pacer with it.
func (d *decided) unpaced() []note.Note {
	paces, t := d.keeper.Paces(), d.target
	do := func(what fault.Do) fault.Remedy { return fault.Remedy{Do: what, Target: t.String()} }
	switch {
	case !d.request.Persist, paces == keep.PaceStarts, d.what.Paced == nil && d.what.Escapes == nil:
		return nil
	case paces == keep.PaceFollows:
		return []note.Note{note.Noticef("pacer-ends", "after a boot nothing starts the pacer").With(do(fault.SetAgain))}
	case d.what.Paced != nil:
		return []note.Note{note.Warningf("pacer-ends", "after a restart of %s nothing starts the pacer", t).With(do(fault.HoldAgain))}
	}
	return []note.Note{note.Noticef("pacer-ends", "after a restart of %s nothing starts the pacer", t).With(do(fault.HoldForeign))}
}

// afterRules is an action that keeps limits which are in force by then.
type afterRules struct {
	keep.Action
	t targets.Target
}

func (a afterRules) Do(ctx context.Context) (keep.Done, error) {
	done, err := a.Action.Do(ctx)
	if err != nil {
		err = fmt.Errorf("set %s: the limit is in force now, but a restart loses it: %w", a.t, err)
	}
	return done, err
}

// ErrEnded says that a target has ended while its limits were set.
var ErrEnded = errors.New("it has ended")

// setRules puts the rules into force, and asks the pacer while the group is still locked. If the
// pacer is not available, it takes the rules back.
type setRules struct {
	*decided
	locked hold.Locked
	was    *pacer.Job // what the pacer was asked before; nil: nothing
}

func (a *setRules) Steps(ctx context.Context) ([]hold.Step, error) {
	pace, err := a.m.repaceSteps(a.target, a.was, a.what)
	return append(a.m.Host.Holder().Steps(ctx, a.plan), pace...), err
}

func (a *setRules) Do(ctx context.Context) (done keep.Done, err error) {
	notes, err := a.m.enforce(ctx, a.locked, a.target, a.plan)
	a.notes = append(a.notes, notes...)
	if err != nil {
		if there, unread := a.target.Group.Exists(); unread == nil && !there {
			err = fmt.Errorf("set %s: %w, so nothing is limited: %w", a.target, ErrEnded, err)
		}
	}
	return done, err
}

// pace asks the pacer for what was decided. If nobody asked for the pacer and it is not available,
// that is a warning, and the decision changes.
func (a *setRules) pace() error {
	how, err := a.m.Host.Deciding().Pacing(a.what, a.target.Owner.Unit)
	if err == nil {
		var notes []note.Note
		notes, err = a.m.repace(a.target, a.was, how)
		a.notes = append(a.notes, notes...)
	}
	if err == nil || a.was != nil || a.what.Hold != limit.HoldAuto {
		return err
	}
	a.notes = append(a.notes, note.Warningf("no-pacer", "%v", err))
	a.what, err = a.what.Without()
	return err
}
