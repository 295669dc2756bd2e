package planned

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// A Report is the targets of a host with their plans.
type Report struct {
	Targets []Target
	// Others are limited targets that are in no plan and in no record. weir leaves their
	// limits alone.
	Others []string
}

// IsEmpty reports whether nothing was found.
func (r Report) IsEmpty() bool { return len(r.Targets)+len(r.Others) == 0 }

// Steps are all that a dry run would do.
func (r Report) Steps() (steps []hold.Step) {
	for _, t := range inTurn(r.Targets) {
		steps = append(steps, t.Preview.Steps...)
	}
	return steps
}

// inTurn has targets in the order in which they are changed: an heir before the target whose record it gets, so that it has
// its own then.
func inTurn(all []Target) (turn []*Target) {
	for _, inherited := range []bool{false, true} {
		for i := range all {
			if t := &all[i]; (t.heir != nil) == inherited {
				turn = append(turn, t)
			}
		}
	}
	return turn
}

// Show compares one target with its plan.
func (m Manager) Show(ctx context.Context, spec string) (Report, error) {
	t, err := m.Host.Target(ctx, spec)
	if err != nil {
		return Report{}, err
	}
	l, is, err := m.listed(ctx, t)
	if err != nil {
		return Report{}, err
	}
	choice := plans.Choice{Plan: plans.None}
	if is {
		choice = m.ChoiceOf(l)
	}
	one := m.look(ctx, spec, choice, m.recordBeside(l, choice))
	return Report{Targets: []Target{one}}, one.Err
}

// Diff compares all running targets with their plans. It changes nothing. A kind that cannot be
// asked, and a target that cannot be looked at, are in the error and keep no other from it.
func (m Manager) Diff(ctx context.Context) (Report, error) {
	all, err := m.find(ctx)
	r := Report{Targets: all}
	errs := []error{err}
	for _, t := range all {
		if t.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.Name, t.Err))
		}
	}
	r.Others, err = m.others(ctx, all)
	return r, errors.Join(append(errs, err)...)
}

// find finds all targets that have a plan, choose one that they may not, or have limits that weir
// has put into force.
func (m Manager) find(ctx context.Context) (all []Target, err error) {
	left, err := recorded(m.Host.Root)
	m = m.forMany()
	errs := []error{err}
	h := newHeirs(m)
	for _, kind := range kinds {
		if !m.Config.Needs(kind) {
			continue
		}
		listed, err := m.list(ctx, kind)
		if h.lists[kind] = (listing{listed, err}); err != nil {
			errs = append(errs, err)
		}
		listed, unread := readable(listed, left)
		errs = append(errs, unread)
		for _, l := range listed {
			key, choice := keyOf(l), m.ChoiceOf(l)
			r := take(left, l) // its owner lists it, whatever can be found of it now
			if choice.IsNone() && r == nil && choice.Refused == "" {
				continue
			}
			one := m.look(ctx, specOf(l), choice, r)
			if one.Name, one.key = l.String(), key; one.State != Stopped && one.State != Gone {
				all = append(all, one)
			}
		}
	}
	for _, key := range sorted(left) {
		r := left[key]
		its := m.on(m.Host.With(kindOf(key), r.Host))
		if h.lists[kindOf(key)].err != nil {
			continue
		}
		one := its.look(ctx, key, plans.Choice{Plan: plans.None}, r)
		one.Name, one.key = r.Name, key
		if one.State != Stopped { // systemd may set the limit again when it starts: the record stays
			all = append(all, one)
		}
	}
	all = onceEach(all)
	for i := range all {
		h.settle(ctx, &all[i])
		h.yield(ctx, &all[i])
		if heir := all[i].heir; heir != nil {
			if its := slices.IndexFunc(all, func(t Target) bool { return t.key == heir.key }); its >= 0 {
				all[i].heir = &all[its]
			}
		}
	}
	return all, errors.Join(errs...)
}

// onceEach refuses a second plan for one group, which two kinds can name.
func onceEach(all []Target) []Target {
	first := map[string]string{}
	for i := range all {
		t := &all[i]
		if t.group == nil || t.Choice.IsNone() {
			continue
		}
		was, there := first[t.group.Path()]
		if there && t.State != Failed {
			t.State, t.Err = Failed, errShared(was, t.Path())
		}
		if !there {
			first[t.group.Path()] = t.Name
		}
	}
	return all
}

// others are limited groups that are none of the targets.
func (m Manager) others(ctx context.Context, all []Target) ([]string, error) {
	its := map[string]bool{}
	for _, t := range all {
		its[t.Path()] = true
	}
	shown, err := m.limits().ShowAll(ctx, 0)
	var names []string
	for _, g := range shown.Groups {
		if !its[g.Path] {
			names = append(names, g.Target)
		}
	}
	return names, err
}

// Apply puts the plans into force on all running targets, and takes away what weir has put into
// force for targets that have no plan any more. What is in force already is not written again.
// One target that cannot be limited keeps no other from it. Of a dry run nothing changes, and the
// report has the steps.
func (m Manager) Apply(ctx context.Context, dry bool) (Report, error) {
	io, err := m.Host.IO()
	if err != nil {
		return Report{}, err
	}
	var errs []error
	if !dry {
		if err := io.Writable(); err != nil {
			return Report{}, err
		}
		unlock, err := lock(ctx, m.Host, kinds...)
		if err != nil {
			return Report{}, err
		}
		defer unlock()
		errs = append(errs, m.sweepFirst())
	}
	r, err := m.Diff(ctx)
	errs = append(errs, err)
	for _, t := range inTurn(r.Targets) {
		if err := m.apply(ctx, t, dry); err != nil {
			errs = append(errs, t.told(err))
		}
	}
	return r, errors.Join(errs...)
}

// told notes what went wrong with a target, and says it of the target by name. One whose limits are in force has not failed.
func (t *Target) told(err error) error {
	t.Err = err
	var record *RecordError
	if errors.As(err, &record) { // which has the name
		return err
	}
	t.State = Failed
	return fmt.Errorf("%s: %w", t.Name, err)
}

// apply changes one target as far as that is due.
func (m Manager) apply(ctx context.Context, t *Target, dry bool) error {
	its := m.on(t.host)
	if t.State == Kept {
		return nil
	}
	if t.Choice.IsNone() && t.record != nil && t.State != Failed && t.State != Stopped {
		if t.heir != nil {
			return m.handOver(t, dry)
		}
		if t.State == Differs {
			if err := its.change(ctx, t, t.key, dry); err != nil {
				return err
			}
		}
		return its.unrecord(t, dry)
	}
	if t.State == Differs && !dry {
		its.catchUp(ctx, t)
	}
	if t.State != Differs {
		return m.amend(ctx, t, dry)
	}
	next := m.recordOf(*t)
	until := next.with(t.record) // until the change is done, either rate can be in force
	if dry {
		err := its.change(ctx, t, t.Name, true)
		first, errFirst := m.recordStep(until)
		t.Preview.Steps = append([]hold.Step{first}, t.Preview.Steps...)
		if err == nil && until != next {
			last, errLast := m.recordStep(next)
			t.Preview.Steps, err = append(t.Preview.Steps, last), errLast
		}
		return errors.Join(err, errFirst)
	}
	// The record comes first: what weir has put into force is always on it.
	if !t.record.is(until) {
		if err := until.save(m.Host.Root); err != nil {
			return err
		}
	}
	// By its key: the name can be another's by now.
	err := its.change(ctx, t, t.key, false)
	switch {
	case err != nil:
		return errors.Join(err, m.fallBack(ctx, t, next))
	case until != next:
		return onRecord(t, next.save(m.Host.Root))
	}
	return nil
}

// recordStep is the step of a dry run that saves a record.
func (m Manager) recordStep(r *record) (hold.Step, error) {
	text, err := rawtext.Marshal(r)
	return hold.Step{File: filepath.Join(m.Host.Root, records, fileOf(r.Target)), Line: string(text)}, err
}

// fallBack puts on record what there is of a target whose change has failed: it can have been taken back in
// part only, and who was asked for it may do it later.
func (m Manager) fallBack(ctx context.Context, t *Target, next *record) error {
	left := *next
	left.Group = new(uint64) // not all was done for any group
	if rules, err := t.rulesLeft(ctx); err == nil {
		left.Limits = inForce(rules, next.Limits)
	}
	switch {
	case !slices.ContainsFunc(left.Limits, func(d deviceRule) bool { return !t.record.hasAll(d) }) && t.record != nil:
		return t.record.save(m.Host.Root)
	case len(left.Limits) == 0:
		return next.forget(m.Host.Root)
	}
	return left.with(t.record).save(m.Host.Root) // of two rates of one device either can be in force
}

// rulesLeft are the rules in force; an error: they are not known, or may still come.
func (t *Target) rulesLeft(ctx context.Context) ([]cgroupfs.Rule, error) {
	if t.group == nil {
		return nil, errors.New("it had no group")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return t.group.RulesIfAny()
}

// unrecord removes the record of a target that has no plan any more.
func (m Manager) unrecord(t *Target, dry bool) error {
	if dry {
		t.Preview.Steps = append(t.Preview.Steps, hold.Step{File: filepath.Join(m.Host.Root, records, fileOf(t.key))})
		return nil
	}
	return t.record.forget(m.Host.Root)
}

// change writes the rates of a target that differ.
func (m Manager) change(ctx context.Context, t *Target, spec string, dry bool) error {
	request := limiting.Request{Target: spec, Keep: true} // somebody may have written them since: PutFirst
	for _, d := range t.Rows {
		l := d.Change()
		if t.Unpaced || t.Begun {
			l = d.Plan
		}
		if !l.IsZero() {
			request.Asked = append(request.Asked, limit.Asked{On: d.Number.String(), Limit: l})
		}
	}
	prepare := m.limits().PrepareSet
	if found := t.known(); found != nil {
		prepare = func(ctx context.Context, r limiting.Request) (limiting.Change, error) {
			return m.limits().PrepareSetOn(ctx, *found, r)
		}
	}
	change, err := prepare(ctx, request)
	if err != nil {
		t.Result.Noted = limiting.NotesOf(err)
		return err
	}
	if dry {
		t.Preview, err = change.Steps(ctx)
		return err
	}
	t.Result, err = change.Apply(ctx)
	t.Result.Notes = slices.DeleteFunc(t.Result.Notes, isAboutRestarts)
	if err == nil {
		t.State = Changed
	}
	return err
}

// known is the target, if nobody has to be asked for it again: it was given, or its group is still the one that was found.
func (t *Target) known() *targets.Target {
	if t.given != nil || t.found == nil || t.id == 0 {
		return t.given
	}
	if id, err := t.group.ID(); err != nil || id != t.id {
		return nil
	}
	return t.found
}

// isAboutRestarts reports whether a note tells that a restart loses the limit, and how to have it
// kept. Plans are applied again.
func isAboutRestarts(n note.Note) bool { return n.Code == "lost-at-restart" }
