package planned

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// kinds are asked for targets in this order. Where two name the same group, the first counts.
var kinds = []string{"docker", "podman", "containerd", "pod", "vm", "unit"}

// factsOf is what a plan can go by.
func factsOf(l targets.Listed) plans.Facts {
	f := plans.Facts{Kind: l.Kind, Names: l.Names, Namespace: l.Namespace, Labels: l.Labels}
	if own, has := l.Labels[plans.OwnLabel]; has && l.Kind != "pod" {
		f.Own = &own
	}
	if l.Annotations != nil {
		askedBy(l, &f)
	}
	if number, is := strings.CutPrefix(l.Name, "user-"); is && l.Kind == "unit" {
		number, is = strings.CutSuffix(number, ".slice")
		if n, err := strconv.ParseUint(number, 10, 32); is && err == nil {
			user := uint32(n)
			f.User = &user
		}
	}
	return f
}

// uidMost bounds a pod's UID, in bytes: whoever makes pods without kubelet chooses it.
const uidMost = 253

// keyOf is the name that a target is looked at by, and that its record goes by: the container's id, or the pod's UID, for a
// name may be another's later. A pod that is made anew has its name while the earlier one ends.
func keyOf(l targets.Listed) string {
	if l.Kind == "pod" && targets.IsWord(l.UID, uidMost) {
		return l.Kind + ":" + l.UID
	}
	if l.ID != "" && l.Kind != "containerd" {
		return l.Kind + ":" + l.ID
	}
	return l.String()
}

// specOf is the name that a target is looked at by where a user is told of it: another pod can have its name.
func specOf(l targets.Listed) string {
	if l.Kind == "pod" {
		return keyOf(l)
	}
	return l.String()
}

// Of finds the plan of a target. A target of a kind that plans are not for, or that its owner does
// not list, has none.
func (m Manager) Of(ctx context.Context, t targets.Target) (plans.Choice, error) {
	l, is, err := m.listed(ctx, t)
	if err != nil || !is {
		return plans.Choice{Plan: plans.None}, err
	}
	return m.ChoiceOf(l), nil
}

// listed finds how the owner of a target lists it; false: plans are not for its kind, or its owner does not list it.
func (m Manager) listed(ctx context.Context, t targets.Target) (l targets.Listed, is bool, err error) {
	lists := map[string][]targets.Listed{}
	for _, kind := range kinds {
		if m.Config.Needs(kind) && (kind == t.Kind || kind == kindOfOwner(t.Owner)) {
			all, err := m.list(ctx, kind)
			if err != nil {
				return l, false, err
			}
			lists[kind] = all
		}
	}
	l, is = listedAs(lists, t.Kind, t.Name, t.Owner)
	if is && l.Unread != nil {
		return l, false, l.Unread
	}
	return l, is, nil
}

// recordBeside is what is on record of a target with a plan that is shown; nil: nothing, or nothing that this user may read.
func (m Manager) recordBeside(l targets.Listed, c plans.Choice) *record {
	if c.IsNone() {
		return nil
	}
	r, err := recordFor(m.Host.Root, keyOf(l), l.String())
	if err != nil {
		return nil
	}
	return r
}

// kindOfOwner is the kind of targets that an owner of groups makes; empty: it is not known.
func kindOfOwner(o targets.Owner) string {
	switch o.Kind {
	case "docker", "podman":
		return o.Kind
	case "systemd":
		return "unit"
	case "kubernetes":
		return "pod"
	case "libvirt":
		return "vm"
	}
	return ""
}

// listedAs finds how the owner of a target lists it: by its name or, whatever it is called, by the
// owner's name for it.
func listedAs(lists map[string][]targets.Listed, kind, name string, o targets.Owner) (targets.Listed, bool) {
	if i := slices.IndexFunc(lists[kind], func(l targets.Listed) bool { return l.UID != "" && l.UID == name }); i >= 0 {
		return lists[kind][i], true // of two pods of a name
	}
	find := func(kind string, is func(targets.Listed) bool) (targets.Listed, bool) {
		if i := slices.IndexFunc(lists[kind], is); i >= 0 {
			return lists[kind][i], true
		}
		return targets.Listed{}, false
	}
	if its := kindOfOwner(o); its != "" && o.Name != "" {
		return find(its, func(l targets.Listed) bool {
			return l.Name == o.Name || l.ID != "" && strings.HasPrefix(l.ID, o.Name)
		})
	}
	return find(kind, func(l targets.Listed) bool { return l.Name == name })
}

// look compares a target with its plan, or, without a plan, with what weir has put into force.
func (m Manager) look(ctx context.Context, name string, choice plans.Choice, r *record) Target {
	t, err := m.Host.Target(ctx, name)
	return m.compared(ctx, Target{Name: name, Choice: choice, State: NoPlan, host: m.Host, record: r}, t, err)
}

// compared compares a target that was found, or says why it was not.
func (m Manager) compared(ctx context.Context, one Target, t targets.Target, err error) Target {
	var stopped *targets.StoppedError
	var notFound *targets.NotFound
	var ungrouped targets.Ungrouped
	gone := cgroupfs.IsGone(err)
	switch {
	case asUngrouped(err, &ungrouped):
		err, gone = m.compare(ctx, &one, nil), false
	case errors.As(err, &stopped):
		one.State = Stopped
		return one
	case errors.As(err, &notFound):
		one.State = Gone
		return one
	case err == nil:
		one.found, one.group = &t, &t.Group
		gone, err = m.compareFound(ctx, &one, t)
	}
	switch {
	case gone:
		one.State = Gone
	case err != nil:
		one.State, one.Err = Failed, err
	case one.differs() && m.Alone && one.record != nil && one.record.Agent:
		one.State, one.Unpaced, one.Begun = Kept, false, false
		for i := range one.Rows {
			one.Rows[i].Plan = one.Rows[i].Now
		}
	case one.differs():
		one.State = Differs
		if one.group != nil {
			one.id, _ = one.group.ID() // else it has ended
		}
	case !one.Choice.IsNone():
		one.State = InForce
	}
	return one
}

// comparesMost is how often a target is compared whose processes end meanwhile, and whose mounts others of its processes have.
const comparesMost = 3

// compareFound compares a target that was found, unless it has ended since. A place of its plan that is not there is an error.
func (m Manager) compareFound(ctx context.Context, one *Target, t targets.Target) (gone bool, err error) {
	for range comparesMost {
		one.Rows = nil
		if err = m.compare(ctx, one, &t); !cgroupfs.IsGone(err) {
			return false, err
		}
		m.giveWay(ctx)
		if m.hasEnded(t) {
			return true, nil
		}
		var missing *blkdev.NotFoundError
		if errors.As(err, &missing) {
			return false, err
		}
	}
	return false, err
}

// hasEnded reports whether a target that was found has ended since: its group is gone, or the processes by whose mounts
// it is known.
func (m Manager) hasEnded(t targets.Target) bool {
	if there, err := t.Group.Exists(); err != nil || !there {
		return err == nil
	}
	return !slices.ContainsFunc(t.Views(), func(pid int) bool {
		_, err := m.Host.Devices().Mounts(pid)
		return !cgroupfs.IsGone(err)
	})
}

func asUngrouped(err error, into *targets.Ungrouped) bool { return errors.As(err, into) }

// compare fills in the devices of a target. Without a group it has no limit yet.
func (m Manager) compare(ctx context.Context, one *Target, t *targets.Target) error {
	var rules []cgroupfs.Rule
	if t != nil {
		var err error
		if rules, err = t.Group.RulesIfAny(); err != nil {
			return err
		}
	}
	one.Choice = one.record.asBefore(one.Choice, one)
	if one.Choice.IsNone() {
		m.compareRecord(ctx, one, rules)
		return nil
	}
	places, err := m.places(ctx, one, t)
	if err != nil {
		return err
	}
	for _, p := range places {
		one.Rows = append(one.Rows, Device{p.Device, ruleOn(rules, p), limit.None.Overlay(p.Limit)})
	}
	for _, r := range rules {
		if r.Limit.Bounds() && !slices.ContainsFunc(places, func(p place.Placed) bool { return p.Device.Number == r.Device }) {
			one.Rows = append(one.Rows, Device{m.Host.Device(ctx, r.Device), limit.None.Overlay(r.Limit), limit.None})
		}
	}
	if one.given != nil {
		one.leaveInForce(len(places))
	}
	one.Begun = t != nil && len(one.Rows) > 0 && one.record.isBegun(t.Group)
	if t != nil && m.Host.IsOwn() {
		one.Unpaced, one.Unheld, err = m.unpaced(*t, rules, places)
	}
	return err
}

// places finds the devices of a target's plan, its annotations and its volumes, with what all of them
// allow. What it finds is in one.seen.
func (m Manager) places(ctx context.Context, one *Target, t *targets.Target) (places []place.Placed, err error) {
	one.seen = m.seenOf(one)
	if one.Choice.Plan != plans.None {
		if places, err = m.placePlan(ctx, one, t); err != nil {
			return nil, err
		}
	}
	if t == nil {
		return places, nil
	}
	if one.Choice.Asks() {
		own, unfound, err := m.placeOwn(ctx, one.Choice, *t, one.seen)
		if one.Unfound = unfound; err != nil {
			return nil, err
		}
		places = lowest(places, own)
	}
	its, err := m.placeVolumes(ctx, one.Choice, *t, one.seen)
	if err != nil {
		return nil, err
	}
	places = lowest(places, its)
	for _, d := range one.record.keptBy(one) {
		before, err := m.standing(ctx, d.Device, d.Limit)
		if err != nil {
			return nil, err
		}
		places = lowest(places, before)
	}
	return places, nil
}

// placePlan finds the devices of a target's plan.
func (m Manager) placePlan(ctx context.Context, one *Target, t *targets.Target) ([]place.Placed, error) {
	p, err := m.named(one.Choice.Plan)
	if err != nil {
		return nil, err
	}
	asked, err := m.asked(ctx, p, t)
	if err != nil {
		return nil, err
	}
	places, err := m.place(ctx, asked, t)
	if err != nil || one.seen == nil || p.Limit.IsZero() {
		return places, err
	}
	found := places
	if len(p.On) > 0 { // which can be on disks that the target has not mounted
		if found, err = m.place(ctx, whole(p), t); err != nil {
			return nil, err
		}
	}
	return m.everywhere(ctx, places, found, p.Limit, one.seen)
}

// unpaced reports whether weir's pacer is to hold buffered writes of a target, and was not asked. unheld says
// that those are all its buffered writes, and not only what the kernel charges to other groups.
func (m Manager) unpaced(t targets.Target, rules []cgroupfs.Rule, places []place.Placed) (is, unheld bool, err error) {
	deciding := m.deciding
	if deciding == nil {
		one := m.Host.Deciding()
		deciding = &one
	}
	d, err := deciding.DecideWith(t.Group, rules, places, limit.HoldAuto)
	if err != nil || d.Paced == nil && d.Escapes == nil {
		return false, false, err
	}
	asked, err := deciding.IsAsked(t.Group)
	is = !asked
	return is, is && d.Paced != nil, err
}

// compareRecord finds what weir has put into force for a target that has no plan any more. What
// somebody else has changed since stays.
func (m Manager) compareRecord(ctx context.Context, one *Target, rules []cgroupfs.Rule) {
	for _, r := range rules {
		row := Device{Device: m.Host.Device(ctx, r.Device), Now: limit.None.Overlay(r.Limit)}
		row.Plan = row.Now
		for _, k := range limit.Keys {
			if n, bound := row.Now.Get(k).Number(); bound && one.record.has(r.Device, k, n) {
				row.Plan = row.Plan.With(k, limit.Unlimited)
			}
		}
		one.Rows = append(one.Rows, row)
	}
}

// ruleOn is the limit in force on a device, with all four rates.
func ruleOn(rules []cgroupfs.Rule, p place.Placed) limit.Limit {
	l := limit.None
	for _, r := range rules {
		if r.Device == p.Device.Number {
			l = l.Overlay(r.Limit)
		}
	}
	return l
}
