package planned

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/plans"
)

// Kinds are the kinds of targets that plans are for. Where two name the same group, the first
// counts.
func Kinds() []string { return slices.Clone(kinds) }

// fewMost is of how many targets it is asked one by one what weir's pacer holds. To read it of all takes as long as that
// there are.
const fewMost = 8

// OfKind is Diff for one kind of targets, and for those of them that have names: a container's id or its
// beginning, a pod's UID, or another target's name. nil: for all, and for those that are gone and have had limits
// from weir.
func (m Manager) OfKind(ctx context.Context, kind string, names []string) ([]Target, error) {
	var left map[string]*record // of the kind, if all are asked for
	var errs []error
	if names == nil {
		var err error
		if left, err = recorded(m.Host.Root); err != nil {
			errs = append(errs, err)
		}
		maps.DeleteFunc(left, func(key string, _ *record) bool { return kindOf(key) != kind })
	}
	if !m.Config.Needs(kind) && len(left) == 0 && (names == nil || !isRecorded(m.Host.Root, kind)) {
		return nil, errors.Join(errs...)
	}
	if names == nil || len(names) > fewMost {
		m = m.forMany()
	} else {
		deciding := m.Host.Deciding().ForMany()
		m.deciding = &deciding
	}
	listed, silent := m.list(ctx, kind, names...)
	listed, unread := readable(listed, left)
	var all []Target
	for _, l := range listed {
		m.giveWay(ctx)
		if names != nil && !slices.ContainsFunc(names, func(name string) bool {
			return name == l.Name || name == l.UID || l.ID != "" && strings.HasPrefix(l.ID, name)
		}) {
			continue
		}
		key, choice := keyOf(l), m.ChoiceOf(l)
		r := take(left, l)
		if names != nil { // of a few among many
			var err error
			if r, err = recordFor(m.Host.Root, key, l.String()); err != nil {
				errs = append(errs, err)
			}
		}
		if choice.IsNone() && r == nil && choice.Refused == "" {
			continue
		}
		one := m.look(ctx, key, choice, r) // by its id: another can have its name by now
		if one.Name, one.ID, one.key = l.String(), cmp.Or(l.UID, l.ID), key; one.State != Stopped && one.State != Gone {
			all = append(all, one)
		}
	}
	if names == nil && silent == nil {
		all = append(all, m.ofLeft(ctx, kind, left)...)
	}
	h := newHeirs(m)
	for i := range all {
		h.settle(ctx, &all[i])
		h.yield(ctx, &all[i])
	}
	return all, errors.Join(append(errs, unread, silent)...)
}

// ofLeft looks at targets that their owner does not list, and that weir has limited.
func (m Manager) ofLeft(ctx context.Context, kind string, left map[string]*record) (all []Target) {
	for _, key := range sorted(left) {
		m.giveWay(ctx)
		r := left[key]
		one := m.on(m.Host.With(kind, r.Host)).look(ctx, key, plans.Choice{Plan: plans.None}, r)
		one.Name, one.key = r.Name, key
		if one.State != Stopped { // systemd may set the limit again when it starts: the record stays
			all = append(all, one)
		}
	}
	return all
}

func (m Manager) giveWay(ctx context.Context) {
	if m.GiveWay != nil {
		m.GiveWay(ctx)
	}
}

// Put is Apply for one target that OfKind has found.
func (m Manager) Put(ctx context.Context, t *Target) error {
	changed := []string{kindOf(t.key)}
	if t.heir != nil {
		changed = append(changed, kindOf(t.heir.key))
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, heirMost, fmt.Errorf("its record is not handed over within %v", heirMost))
		defer cancel()
	}
	unlock, err := lock(ctx, m.Host, changed...)
	if err != nil {
		return err
	}
	defer unlock()
	return m.apply(ctx, t, false)
}

// catchUp looks at a target again whose group has got its first rules since it was found: they can be on
// devices that it is to have no rule on, and their record is not to be lost.
func (m Manager) catchUp(ctx context.Context, t *Target) {
	r, err := recordOf(m.Host.Root, t.key)
	if err != nil || r == nil || t.record.agrees(r) {
		return // one that cannot be read is written anew
	}
	m.lookAgain(ctx, t, r)
}

// lookAgain looks at a target of which another record was read since it was found.
func (m Manager) lookAgain(ctx context.Context, t *Target, r *record) {
	t.record = r
	now := m.look(ctx, t.key, t.Choice, r)
	if now.Name, now.ID, now.key = t.Name, t.ID, t.key; now.State == Differs || now.State == InForce {
		*t = now
	}
}

// Key is the permanent name of a target: docker:WHOLE-ID, pod:UID.
func (t Target) Key() string { return t.key }

// Path is that of the target's cgroup; empty: it has none.
func (t Target) Path() string {
	if t.group == nil {
		return ""
	}
	return t.group.Path()
}

// IsNew reports whether weir has never limited a target, or an earlier group of it alone, as of a container before its
// restart.
func (t Target) IsNew() bool {
	return t.record == nil || t.group != nil && t.record.isBegun(*t.group)
}

// Lapsed reports whether all that there is of a target is the record of limits that it had from
// weir. Put removes that, or has the heir of the target have it.
func (t Target) Lapsed() bool {
	return t.Choice.IsNone() && t.record != nil && (t.State == Gone || t.State == NoPlan)
}
