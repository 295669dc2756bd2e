package limiting

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/targets"
)

// A State says what became of a saved limit.
type State string

// The states.
const (
	Restored State = "set"
	Stopped  State = "stopped" // the target does not run
	Unknown  State = "unknown" // its owner does not know it
	Failed   State = "failed"
)

// A Restoring is what became of the saved limits of one target.
type Restoring struct {
	Target   string        // by its owner's name for good
	Name     string        // as the user spelled it
	State    State         // of a dry run: what it would be
	Err      error         // why it failed; nil: it did not
	Kept     []limit.Asked // that are saved
	Results  []Result      // of each limit that was set
	Previews []Preview     //  of each that would be set
}

// A Restore asks to set saved limits again.
type Restore struct {
	Targets []string // none: all that have any
	Dry     bool     // nothing changes
	Foreign bool     // see Request
}

// Restore sets saved limits again. One that cannot be set keeps no other from it. The error is
// about names without saved limits, and records that cannot be read. If nothing could be tried, the
// list is nil.
func (m Manager) Restore(ctx context.Context, r Restore) ([]Restoring, error) {
	io, err := m.Host.IO()
	if err != nil {
		return nil, err
	}
	if err := io.Writable(); err != nil && !r.Dry {
		return nil, err
	}
	all, err := keep.ListSaved(m.Host.Root)
	records, notFound := m.keptOf(ctx, all, r.Targets)
	done := []Restoring{}
	for _, its := range records {
		one := Restoring{Target: its.Target, Name: its.Name, Kept: its.Entries}
		one.State, one.Err = m.restore(ctx, r, &one)
		done = append(done, one)
	}
	return done, errors.Join(err, notFound)
}

// restore sets what a target's record has, if it runs. One place that cannot be limited keeps no
// other from it.
func (m Manager) restore(ctx context.Context, how Restore, into *Restoring) (State, error) {
	unlock, err := keep.Lock(ctx, m.Host, false)
	if err != nil {
		return Failed, err
	}
	defer unlock()
	lasting := into.Target
	r, err := keep.ReadSaved(m.Host.Root, lasting) // it may have been cleared meanwhile
	if err != nil {
		return Failed, err
	}
	kind, _, _ := strings.Cut(lasting, ":")
	its := Manager{m.Host.With(kind, r.Host)}
	t, err := its.Host.Target(ctx, lasting)
	var stopped *targets.StoppedError
	var none *targets.NotFound
	switch {
	case errors.As(err, &stopped) && stopped.Lasting == lasting:
		return Stopped, nil
	case errors.As(err, &none), errors.As(err, &stopped), err == nil && t.Lasting != lasting: // the beginning of another's id
		return Unknown, nil
	case err != nil:
		return Failed, fmt.Errorf("restore %s: %w", r.Name, err)
	}
	var errs []error
	for _, e := range r.Entries {
		if err := its.restoreOne(ctx, how, t, e, into); err != nil {
			errs = append(errs, fmt.Errorf("restore %s: %w", r.Name, err))
		}
	}
	if errs != nil {
		return Failed, errors.Join(errs...)
	}
	return Restored, nil
}

// restoreOne sets one saved limit.
func (m Manager) restoreOne(ctx context.Context, how Restore, t targets.Target, saved limit.Asked, into *Restoring) error {
	s := &setting{m: m, restored: true, request: Request{Asked: []limit.Asked{{On: saved.On, Limit: saved.Limit}}, Hold: saved.Hold, Foreign: how.Foreign}}
	if err := s.prepare(ctx, t); err != nil {
		if how.Dry {
			into.Previews = append(into.Previews, Preview{Notes: s.notes})
		} else {
			into.Results = append(into.Results, Result{Noted: s.notes})
		}
		return err
	}
	if how.Dry {
		p, err := s.Steps(ctx)
		into.Previews = append(into.Previews, p)
		return err
	}
	r, err := s.Apply(ctx)
	into.Results = append(into.Results, r)
	return err
}

// Steps are all that a dry run would do.
func (r Restoring) Steps() (steps []hold.Step) {
	for _, p := range r.Previews {
		steps = append(steps, p.Steps...)
	}
	return steps
}

// keptOf picks the records of targets that are named, as they were when the limits were set, or
// are now.
func (m Manager) keptOf(ctx context.Context, all []keep.Saved, specs []string) ([]keep.Saved, error) {
	if len(specs) == 0 {
		return all, nil
	}
	var some []keep.Saved
	var errs []error
	for _, spec := range specs {
		lasting, err := m.lastingOf(ctx, spec)
		found := false
		for _, r := range all {
			// The name may be another's by now.
			if r.Target == spec || r.Target == lasting || err != nil && r.Name == spec {
				some, found = append(some, r), true
			}
		}
		switch {
		case found:
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, fault.With(fmt.Errorf("restore %s: no limit is saved for it", spec), fault.Remedy{Do: fault.Save, Target: spec}))
		}
	}
	return some, errors.Join(errs...)
}

// lastingOf is the name that a target has for good, also if it does not run.
func (m Manager) lastingOf(ctx context.Context, spec string) (string, error) {
	t, err := m.Host.Target(ctx, spec)
	var stopped *targets.StoppedError
	if errors.As(err, &stopped) {
		return stopped.Lasting, nil
	}
	return t.Lasting, err
}
