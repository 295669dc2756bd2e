package planned

import (
	"context"
	"fmt"
	"slices"
)

// A RecordError says that the limits of a target are in force, and why what is on record of them could not be amended.
type RecordError struct {
	Target string
	Err    error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("%s: its limits are in force, and weir could not bring their record up to date: %v", e.Target, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// onRecord makes an error a *RecordError of a target whose limits are in force; nil: there is no error.
func onRecord(t *Target, err error) error {
	if err == nil {
		return nil
	}
	return &RecordError{t.Name, err}
}

// Amend has the record of a target that OfKind has found say by whom its limits are asked for now, if they are in force.
// Another plan may ask for the same rates, or the API server may, where a plan of the node did. The error is a *RecordError.
func (m Manager) Amend(ctx context.Context, t *Target) error {
	if m.amended(t) == nil {
		return nil
	}
	unlock, err := lock(ctx, m.Host, kindOf(t.key))
	if err != nil {
		return onRecord(t, err)
	}
	defer unlock()
	return m.amend(ctx, t, false)
}

// amended is what is to be on record of a target whose limits are in force; nil: what there is. One without a record keeps
// none, as others may have set its limits, unless weird alone is told of them: others do not set those.
func (m Manager) amended(t *Target) *record {
	was := t.record
	if t.State != InForce || t.group == nil || was != nil && was.Agent && m.Alone {
		return nil
	}
	next := m.recordOf(*t)
	if next.Group == nil || was == nil && (!next.Agent || len(next.Limits) == 0) { // its group has ended, or it keeps none
		return nil
	}
	next.At = now(m.Host.Root)
	if was == nil || was.At != (moment{}) && was.At.Boot != next.At.Boot || !was.hasLimitsOf(next) {
		next.Group = new(uint64) // it is not known who has set them: the rest may still have to be done
		return next
	}
	if t.Choice.Unread.Own && len(was.keptBy(t)) > 0 {
		next.Plan = was.Plan // until it is known what the target has now
	}
	isOfNow := was.older == "" && was.At.Boot == next.At.Boot
	if isOfNow && was.Name == next.Name && was.Host == next.Host && was.Plan == next.Plan && was.Agent == next.Agent && was.Seen.is(next.Seen) {
		return nil
	}
	next.Group = was.Group // all has been done as before
	if isOfNow {
		next.At = was.At // rules that were given to a newborn group since are newer, and their record takes the place of this one
	}
	return next
}

// hasLimitsOf reports whether two records have the same rates.
func (r *record) hasLimitsOf(other *record) bool {
	lacks := func(r, other *record) bool {
		return slices.ContainsFunc(other.Limits, func(d deviceRule) bool { return !r.hasAll(d) })
	}
	return !lacks(r, other) && !lacks(other, r)
}

// amend has the record of a target say what it is to say, if the target's limits are in force. Whoever has given a newborn
// group its rules since the look may have written it: the target is looked at again then. The error is a *RecordError.
func (m Manager) amend(ctx context.Context, t *Target, dry bool) error {
	next := m.amended(t)
	if next == nil {
		return nil
	}
	if dry {
		next.At = moment{} // which no dry run shows
		step, err := m.recordStep(next)
		t.Preview.Steps = append(t.Preview.Steps, step)
		return onRecord(t, err)
	}
	r, err := recordFor(m.Host.Root, t.key, t.Name)
	if err == nil && !t.record.isAsRead(r) { // one that cannot be read is written anew
		m.lookAgain(ctx, t, r)
		if next = m.amended(t); next == nil {
			return nil
		}
	}
	if err := next.saveOf(m.Host.Root); err != nil {
		return onRecord(t, err)
	}
	t.record = next
	return nil
}

// isAsRead reports whether nobody has written a record anew since it was read.
func (r *record) isAsRead(again *record) bool {
	if r == nil || again == nil {
		return r == again
	}
	return r.At == again.At && r.older == again.older
}
