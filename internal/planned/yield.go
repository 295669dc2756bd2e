package planned

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// slowLeast is how long the answer of a daemon takes that is asked no more in a look.
const slowLeast = time.Second

// errShared refuses a second plan for one group, which two kinds can name.
func errShared(has, group string) error {
	return fmt.Errorf("it is in the same cgroup as %s (%s), which has a plan; write an assignment for one of them only", has, group)
}

// errUntold leaves a group the limits of a target whose plan cannot be told.
func errUntold(name string, why error) error {
	return fmt.Errorf("its cgroup has the limits of %s, and keeps them as long as weir cannot tell the plan of that one: %w", name, why)
}

// errOfAgent leaves a group the limits of a target that weird alone is told of. There need be no plan for it.
func errOfAgent(name string) error {
	return fmt.Errorf("its cgroup has limits that weird has set for %s; they stay until that ends or, where weird no longer runs, until you remove them: weir clear %s", name, name)
}

var errUnlisted = errors.New("it is there, and is not listed yet")

// yield leaves a group as it is that has limits of an earlier kind's target: as long as that one has a plan, or it cannot be
// told whether it has. Nobody may have looked at it yet, as its daemon does not answer, or weird has just started.
func (h heirs) yield(ctx context.Context, t *Target) {
	if t.State != Differs || t.Choice.IsNone() || t.found == nil {
		return
	}
	if err := h.held(ctx, *t); err != nil {
		t.State, t.Err = Failed, err
	}
}

// held says why a target's group is to keep the limits that it has of an earlier kind's target; nil: it is not.
func (h heirs) held(ctx context.Context, t Target) error {
	for _, kind := range kinds {
		if kind == kindOf(t.key) {
			return nil
		}
		if !mayHave(kind, *t.found) {
			continue
		}
		for _, r := range h.called(kind, *t.found) {
			if !r.isInForce(t) {
				continue
			}
			if h.m.Alone && r.Agent {
				if at := h.pathOf(ctx, r); at.err != nil || at.path == t.Path() {
					return errOfAgent(r.Name)
				}
				continue
			}
			if !h.m.Config.Needs(kind) {
				continue
			}
			if err := h.heldBy(ctx, r, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// heldBy is held by one target, whose record has rates that are in force. By its name alone it need not be the target of this
// group: the scope of a container can have another group below, with limits of its own.
func (h heirs) heldBy(ctx context.Context, r *record, t Target) error {
	kind := kindOf(r.Target)
	list := h.list(ctx, kind)
	if list.err != nil {
		return errUntold(r.Name, list.err)
	}
	l, listed := h.listed(kind, r.Target)
	why := errUntold(r.Name, errUnlisted)
	switch {
	case listed && l.Unread != nil:
		why = errUntold(r.Name, l.Unread)
	case listed:
		choice := h.m.ChoiceOf(l)
		if its := (Target{Choice: choice, host: h.m.Host, group: t.group}); r.asBefore(choice, &its).IsNone() {
			return nil
		}
		why = errShared(l.String(), t.Path())
	}
	at := h.pathOf(ctx, r)
	switch {
	case isNowhere(at.err), cgroupfs.IsGone(at.err):
		return nil
	case at.err != nil && kind == "vm" && !r.isOf(t): // its name does not lead to its group: this may be another's
		return nil
	case at.err != nil:
		return errUntold(r.Name, at.err)
	case at.path != t.Path():
		return nil
	}
	return why
}

// called are the records of those targets of a kind whose names a target's group can have.
func (h heirs) called(kind string, t targets.Target) (some []*record) {
	var name string
	switch kind {
	case "docker", "podman":
		_, name, _ = targets.ContainerOf(t.Group)
	case "pod":
		name, _ = targets.PodOf(t.Group.Path())
	default:
		for _, r := range h.recordsOf(kind) {
			_, name, _ := strings.Cut(r.Target, ":")
			if has(targets.Listed{Kind: kind, ID: name[strings.LastIndexByte(name, '/')+1:]}, t) {
				some = append(some, r)
			}
		}
		return some
	}
	if r := h.records()[kind+":"+name]; r != nil {
		some = append(some, r)
	}
	return some
}

// recordsOf are the records of a kind, which are looked for once.
func (h heirs) recordsOf(kind string) []*record {
	some, is := h.ofKind[kind]
	if !is {
		for _, key := range sorted(h.records()) {
			if kindOf(key) == kind {
				some = append(some, h.records()[key])
			}
		}
		h.ofKind[kind] = some
	}
	return some
}

// listed finds how a target is listed, by the key of its record, among those that its kind has answered.
func (h heirs) listed(kind, key string) (l targets.Listed, is bool) {
	all := h.lists[kind].all
	at, known := h.keys[kind]
	if !known {
		at = make(map[string]int, len(all))
		for i, l := range all {
			at[keyOf(l)] = i
		}
		h.keys[kind] = at
	}
	i, is := at[key]
	if is {
		l = all[i]
	}
	return l, is
}

// A whereabouts is the path of a target's group, or why that is not known.
type whereabouts struct {
	path string
	err  error
}

// pathOf finds the group of the target of a record, once. After one answer of a daemon that took long, it is asked no more:
// there can be many such targets, and the others of the look wait for them.
func (h heirs) pathOf(ctx context.Context, r *record) whereabouts {
	at, asked := h.places[r.Target]
	kind := kindOf(r.Target)
	if why := h.slow[kind]; !asked && why != nil {
		return whereabouts{err: why}
	}
	if !asked {
		h.m.giveWay(ctx)
		began, host := time.Now(), h.m.Host
		if r.Host != "" { // its own daemon
			host = host.With(kind, r.Host)
		}
		t, err := host.Target(ctx, r.Target)
		if at.err = err; err == nil {
			at.path = t.Group.Path()
		}
		h.places[r.Target] = at
		if took := time.Since(began); took > slowLeast {
			h.slow[kind] = fmt.Errorf("%s took %s to tell where %s is", kind, took.Round(time.Second/10), r.Name)
		}
	}
	return at
}

// isInForce reports whether rates of a record are in force in a target's group.
func (r *record) isInForce(t Target) bool {
	for _, d := range t.Rows {
		for _, k := range limit.Keys {
			if n, bound := d.Now.Get(k).Number(); bound && r.has(d.Number, k, n) {
				return true
			}
		}
	}
	return false
}

// isOf reports whether a record names the group of a target.
func (r *record) isOf(t Target) bool {
	id, err := t.group.ID()
	return err == nil && r.Group != nil && *r.Group == id
}
