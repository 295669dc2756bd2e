package planned

import (
	"context"
	"strings"

	"github.com/weir-io/weir/internal/base/near"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// named finds a plan by the name that a user typed.
func (m Manager) named(name string) (plans.Plan, error) {
	p, there := m.Config.Plan(name)
	if there {
		return p, nil
	}
	names := m.Config.Names()
	if meant := near.Names(plain.Short(name, 100), names); len(meant) > 0 {
		return p, fault.Misusef("plan %q: there is no such plan; did you mean %s?", name, strings.Join(meant, ", "))
	}
	if len(names) == 0 {
		return p, fault.Misusef("plan %q: there is no plan; write one into a file in %s", name, Dir)
	}
	return p, fault.Misusef("plan %q: there is no such plan; write %s", name, strings.Join(names[:min(len(names), 20)], ", "))
}

// Asked is a plan as a request for a target's limits: the rates that the plan names.
func (m Manager) Asked(ctx context.Context, spec, name string) ([]limit.Asked, error) {
	p, err := m.named(name)
	if err != nil || len(p.On) == 0 {
		return whole(p), err
	}
	t, err := m.Host.Target(ctx, spec)
	var ungrouped targets.Ungrouped
	switch {
	case asUngrouped(err, &ungrouped):
		return m.asked(ctx, p, nil)
	case err != nil:
		return nil, err
	}
	return m.asked(ctx, p, &t)
}

// AskedHere is a plan as a request for the limits of a command that weir starts.
func (m Manager) AskedHere(ctx context.Context, name string) ([]limit.Asked, error) {
	p, err := m.named(name)
	if err != nil {
		return nil, err
	}
	return m.asked(ctx, p, nil)
}

// whole is a plan without places.
func whole(p plans.Plan) []limit.Asked {
	if p.Limit.IsZero() {
		return nil
	}
	return []limit.Asked{{Limit: p.Limit}}
}

// asked puts a plan's limits on the target's disks. Where some of its places lead to a disk that the
// target has mounted, the rates of these places count there, and the plan's others. No target: one that
// sees what weir sees.
func (m Manager) asked(ctx context.Context, p plans.Plan, t *targets.Target) ([]limit.Asked, error) {
	if len(p.On) == 0 || p.Limit.IsZero() {
		return append(whole(p), p.On...), nil
	}
	general, err := m.place(ctx, whole(p), t)
	if err != nil {
		return nil, err
	}
	named, err := m.place(ctx, p.On, t) // places on one disk share its rates
	if err != nil {
		return nil, err
	}
	mounted := false
	for i, one := range named {
		if j := indexOf(general, one); j >= 0 {
			mounted, named[i].Limit = true, general[j].Limit.Overlay(one.Limit)
		}
	}
	if !mounted {
		return append(whole(p), p.On...), nil
	}
	var all []limit.Asked
	for _, on := range p.On {
		its, err := m.place(ctx, []limit.Asked{on}, t)
		if err != nil {
			return nil, err
		}
		for _, one := range its {
			if i := indexOf(named, one); i >= 0 { // else its mount has just changed, and the next look finds that
				on.Limit = named[i].Limit
			}
			if len(its) > 1 { // they can have different rates
				on.On = one.Device.Number.String()
			}
			all = append(all, on)
		}
	}
	for _, g := range general {
		if indexOf(named, g) < 0 {
			all = append(all, limit.Asked{On: g.Device.Number.String(), Limit: g.Limit})
		}
	}
	return all, nil
}

// place finds the devices of limits, as a target sees them.
func (m Manager) place(ctx context.Context, asked []limit.Asked, t *targets.Target) ([]place.Placed, error) {
	views := []int{0}
	if t != nil {
		var err error
		if asked, _, err = place.OwnDisks(ctx, m.Host.Devices(), asked, *t); err != nil {
			return nil, err
		}
		views = t.Views()
	}
	all, _, err := place.Place(ctx, m.Host.Devices(), asked, views)
	return all, err
}
