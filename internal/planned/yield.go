package planned

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/targets"
)

// errShared refuses a second plan for one group, which two kinds can name.
func errShared(has, group string) error {
	return fmt.Errorf("it is in the same cgroup as %s (%s), which has a plan; write an assignment for one of them only", has, group)
}

// yield leaves a group as it is that has limits of an earlier kind's target: as long as that one has a plan, or it cannot be
// told whether it has. Nobody may have looked at it yet, as its daemon does not answer, or weird has just started.
func (h heirs) yield(ctx context.Context, t *Target) {
	if t.State != Differs || t.Choice.IsNone() || t.found == nil {
		return
	}
	holder, err := h.holder(ctx, *t)
	switch {
	case err != nil:
		t.State, t.Err = Failed, fmt.Errorf("its cgroup has the limits of %s, and keeps them as long as weir cannot tell the plan of that one: %w", holder, err)
	case holder != "":
		t.State, t.Err = Failed, errShared(holder, t.Path())
	}
}

// holder is the target of an earlier kind whose limits a target's group has, and is to keep; empty: there is none. An error
// says why that cannot be told.
func (h heirs) holder(ctx context.Context, t Target) (name string, err error) {
	for _, kind := range kinds {
		if kind == kindOf(t.key) {
			return "", nil
		}
		if !h.m.Config.Needs(kind) || !mayHave(kind, *t.found) {
			continue
		}
		r := h.inForce(kind, t)
		if r == nil {
			continue
		}
		if h.m.Alone && r.Agent {
			return r.Name, nil
		}
		list := h.list(ctx, kind)
		if list.err != nil {
			return r.Name, list.err
		}
		i := slices.IndexFunc(list.all, func(l targets.Listed) bool { return keyOf(l) == r.Target })
		if i < 0 { // it is gone, unless another daemon of the kind has it
			if err := h.isDown(ctx, kind, *t.found); err != nil {
				return r.Name, err
			}
			continue
		}
		l := list.all[i]
		if l.Unread != nil {
			return r.Name, l.Unread
		}
		choice := h.m.ChoiceOf(l)
		if its := (Target{Choice: choice, host: h.m.Host, group: t.group}); !r.asBefore(choice, &its).IsNone() {
			return l.String(), nil
		}
	}
	return "", nil
}

// inForce is the record of a target of a kind that has a target's group too, if rates of that record are in force; nil: there
// is none.
func (h heirs) inForce(kind string, t Target) *record {
	for _, key := range sorted(h.records()) {
		r := h.records()[key]
		_, name, _ := strings.Cut(key, ":")
		its := targets.Listed{Kind: kind, Name: name, UID: name, ID: name[strings.LastIndexByte(name, '/')+1:]}
		if kindOf(key) != kind || !has(its, *t.found) || kind == "vm" && !r.isOf(t) {
			continue
		}
		for _, d := range t.Rows {
			for _, k := range limit.Keys {
				if n, bound := d.Now.Get(k).Number(); bound && r.has(d.Number, k, n) {
					return r
				}
			}
		}
	}
	return nil
}

// isOf reports whether a record names the group of a target.
func (r *record) isOf(t Target) bool {
	id, err := t.group.ID()
	return err == nil && r.Group != nil && *r.Group == id
}
