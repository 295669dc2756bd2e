package planned

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
)

// birthKind is the kind of the records of rules that PutFirst writes. They are in /run, where no disk
// is waited for.
const birthKind = "birth"

// Ahead finds the rules of a plan before there is a target: on the places that the plan names, or
// else on every disk that this host has mounted. A target that has mounted only some of these disks
// has rules too many until Put has looked at it.
func (m Manager) Ahead(ctx context.Context, plan string) ([]hold.Change, error) {
	places, err := m.places(ctx, &Target{Choice: plans.Choice{Plan: plan}}, nil)
	if err != nil {
		return nil, err
	}
	var all []hold.Change
	for _, p := range places {
		if p.Limit.Bounds() {
			all = append(all, hold.Change{Device: p.Device.Number, Limit: p.Limit.Bound()})
		}
	}
	return all, nil
}

// PutFirst writes a plan's rules, which Ahead has found, for a target whose group was just born. It
// waits for nobody and for no disk before the rules are in force. Everything else, such as the pacer
// and the owner's own settings, is left to Put: the record says that this is still to be done.
//
// It leaves a group alone that already has rules, that another weir works on, or that another user
// has made: only the maker of a target's real group counts, not whoever takes its name. done says
// that the rules are in force.
func (m Manager) PutFirst(l targets.Listed, c plans.Choice, g cgroupfs.Group, rules []hold.Change) (done bool, err error) {
	b, err := m.BeginFirst(l, c, g, rules)
	return b.end(err)
}

// A Birth is a group that has its first rules. The record of them is in /run as yet, where no disk is waited
// for. One of Record and Leave is to be called.
type Birth struct {
	m     Manager
	begun *state.Record
	next  *record
	group uint64
	done  bool // all rules are in force
}

// Record puts the rules on record for good. If that fails, SweepFirst tries it again.
func (b *Birth) Record() error {
	if err := b.m.recordBirth(b.next, b.group); err != nil {
		return errors.Join(err, b.begun.Leave())
	}
	return b.begun.Done()
}

// Leave leaves that to SweepFirst.
func (b *Birth) Leave() error { return b.begun.Leave() }

// end is Record of a birth that was begun with err; nil: none was.
func (b *Birth) end(err error) (done bool, _ error) {
	if b == nil {
		return false, err
	}
	return b.done, errors.Join(err, b.Record())
}

// BeginFirst is PutFirst that waits for no disk at all: the record is Birth.Record's. The birth is nil if no
// rule was written.
func (m Manager) BeginFirst(l targets.Listed, c plans.Choice, g cgroupfs.Group, rules []hold.Change) (*Birth, error) {
	next := &record{Target: keyOf(l), Name: l.String(), Host: m.Host.Socket(l.Kind), Plan: c.Name(), Group: new(uint64)}
	for _, r := range rules {
		next.Limits = append(next.Limits, deviceRule{r.Device, r.Limit})
	}
	return m.beginFirst(next, g, rules)
}

// First is PutFirst for a target that OfKind has found, and that has no rule yet. Where many targets
// are to be limited, all have their rules soon, and the pacer and the owners follow one by one.
func (m Manager) First(t *Target) error {
	if t.State != Differs || t.group == nil || t.Choice.IsNone() || slices.ContainsFunc(t.Rows, func(d Device) bool { return d.Now.Bounds() }) {
		return nil
	}
	next := m.recordOf(*t)
	next.Group = new(uint64)
	var rules []hold.Change
	for _, d := range t.Rows {
		if d.Plan.Bounds() {
			rules = append(rules, hold.Change{Device: d.Number, Limit: d.Plan.Bound()})
		}
	}
	b, err := m.beginFirst(next, *t.group, rules)
	done, err := b.end(err)
	if done {
		t.record = next
	}
	return err
}

func (m Manager) beginFirst(next *record, g cgroupfs.Group, rules []hold.Change) (*Birth, error) {
	if mine, err := isOurs(g); err != nil || !mine {
		return nil, ifThere(err)
	}
	locked, free, err := m.Host.Holder().TryLock(g)
	if err != nil || !free {
		return nil, err
	}
	defer locked.Unlock()
	has, err := hasRules(g)
	if fault.IsUnsupported(err) {
		return nil, nil // Put enables the controller, or says what is wrong
	}
	if err != nil || has {
		return nil, ifThere(err)
	}
	return m.begin(next, g, rules)
}

// isOurs reports whether the user of this weir has made a group.
func isOurs(g cgroupfs.Group) (bool, error) {
	maker, err := g.Maker()
	return err == nil && int(maker) == os.Geteuid(), err
}

// begin writes rules, once they are on record in /run. The caller has locked the group.
func (m Manager) begin(next *record, g cgroupfs.Group, rules []hold.Change) (*Birth, error) {
	id, err := g.ID()
	if err != nil {
		return nil, ifThere(err)
	}
	next.At = now(m.Host.Root)
	begun, err := m.Host.State.New(birthKind, next)
	if err != nil {
		return nil, err
	}
	b := &Birth{m: m, begun: begun, next: next, group: id, done: true}
	var errs []error
	for _, r := range rules { // a device may have gone since it was looked up: the others have their rules all the same
		if err := g.SetRule(r.Device, r.Limit); err != nil { // Put completes what is there, or says what is wrong
			b.done, errs = false, append(errs, ifThere(err))
		}
	}
	return b, errors.Join(errs...)
}

// hasRules reports whether a group may have rules. On v1 one file tells that of a newborn one.
func hasRules(g cgroupfs.Group) (bool, error) {
	if never, err := g.NeverHadRules(); err != nil || never {
		return false, err
	}
	is, err := g.Rules()
	return len(is) > 0, err
}

// recordBirth saves a record, unless there is one that says the same of an earlier group of the target. One
// that names the group itself is from before a boot, after which the kernel counts anew; one that names none
// is an older weir's. One that is newer than the birth stays: the disk may have been waited for meanwhile. What a target's
// processes had mounted is noted of each group.
func (m Manager) recordBirth(next *record, group uint64) error {
	was, err := recordFor(m.Host.Root, next.Target, next.Name)
	if err == nil && was != nil && (was.At.after(next.At) || next.Seen == nil && was.Group != nil && *was.Group != group && was.agrees(next)) {
		return nil
	}
	if err == nil {
		next.inherit(was)
	}
	return next.saveOf(m.Host.Root)
}

// SweepFirst puts on record what a killed weird had begun to set on newborn groups, or one had to leave. The
// rules stay: they are taken away with the plan, as those of any other record. Apply does it too.
func (m Manager) SweepFirst() error {
	if !m.Host.IsOwn() {
		return nil
	}
	return m.sweepFirst()
}

func (m Manager) sweepFirst() error {
	return state.Sweep(m.Host.State, birthKind, func(r record) error {
		was, _ := recordOf(m.Host.Root, r.Target) // one that cannot be read is written anew
		return m.recordBirth(r.with(was), 0)      // the rates before the birth can be in force still
	})
}

// ifThere leaves out the error that a group has ended.
func ifThere(err error) error {
	if cgroupfs.IsGone(err) {
		return nil
	}
	return err
}

// PlansNamed are the plans that some target can have.
func (m Manager) PlansNamed() []string {
	names := map[string]bool{m.Config.Default: true}
	for _, name := range m.Config.AllowLabels {
		names[name] = true
	}
	for _, a := range m.Config.Assignments {
		names[a.Plan] = true
	}
	delete(names, plans.None)
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}
