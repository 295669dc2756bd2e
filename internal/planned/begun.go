package planned

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// lockLook is how often BeginGiven looks at a group that another weir has locked.
const lockLook = time.Millisecond

// BeginGiven writes the rules of a target that Given has found, and reads them back. It asks no daemon and waits for
// no disk. If another weir works on the group, it waits until that weir has the rules in force, or is done. The rest,
// such as the owner's own settings and the pacer for what the kernel charges to other groups, is left to Put: the
// record of the birth asks for it. The birth is nil if there was nothing to write.
//
// done says that the rules are in force. Otherwise nothing has changed, and PutGiven has to do all of it or to say why
// it cannot be done: nothing but the pacer would hold the target, the group has not the io controller, another user has
// made it, or the kernel refuses a rule.
func (m Manager) BeginGiven(ctx context.Context, t *Target) (b *Birth, done bool, err error) {
	if t.State != Differs || t.group == nil || t.Unheld {
		return nil, t.State == InForce, t.Err
	}
	if is, err := t.hasPlan(); err != nil || is {
		return nil, is, unlessUnsupported(err)
	}
	if mine, err := isOurs(*t.group); err != nil || !mine {
		return nil, false, err
	}
	tick := time.NewTicker(lockLook)
	defer tick.Stop()
	for {
		locked, free, err := m.Host.Holder().TryLockKnown(*t.group)
		if err != nil {
			return nil, false, err
		}
		if free {
			defer locked.Unlock()
			return m.beginGiven(t)
		}
		if is, err := t.hasPlan(); err != nil || is {
			return nil, is, unlessUnsupported(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// beginGiven is BeginGiven of a group that is locked.
func (m Manager) beginGiven(t *Target) (*Birth, bool, error) {
	if is, err := t.hasPlan(); err != nil || is { // another weir has been at it
		return nil, is, unlessUnsupported(err)
	}
	next := m.recordOf(*t)
	next.Group, next.Unread = new(uint64), t.Choice.Unread
	var rules []hold.Change
	for _, d := range t.Rows {
		if l := d.Change(); !l.IsZero() {
			rules = append(rules, hold.Change{Device: d.Number, Limit: l})
		}
	}
	b, err := m.begin(next, *t.group, rules)
	if b == nil || b.done {
		return b, b != nil, err
	}
	// What is in force of it goes, so that PutGiven finds the group as it was.
	if err := t.putBack(); err != nil {
		return nil, false, errors.Join(err, b.Leave())
	}
	return nil, false, b.begun.Done()
}

// hasPlan reports whether a target's rules are those of its plan now.
func (t *Target) hasPlan() (bool, error) {
	rules, err := t.group.Rules()
	if err != nil {
		return false, err
	}
	for _, d := range t.Rows {
		now := limit.None
		for _, r := range rules {
			if r.Device == d.Number {
				now = now.Overlay(r.Limit)
			}
		}
		if now != d.Plan {
			return false, nil
		}
	}
	return true, nil
}

// putBack gives a group the rules back that it had before.
func (t *Target) putBack() error {
	var errs []error
	for _, d := range t.Rows {
		now, err := t.group.Rule(d.Number)
		if err == nil && now != d.Now {
			err = t.group.SetRule(d.Number, d.Now)
		}
		if err != nil && !cgroupfs.IsGone(err) {
			errs = append(errs, fmt.Errorf("put back the limits of %s: %w", t.group.Path(), err))
		}
	}
	return errors.Join(errs...)
}

// unlessUnsupported leaves out the error of a group that cannot have rules yet.
func unlessUnsupported(err error) error {
	if fault.IsUnsupported(err) {
		return nil
	}
	return err
}
