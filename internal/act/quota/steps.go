package quota

import (
	"context"
	"fmt"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/state"
)

// SetSteps lists what Set would do now, and refuses what Set refuses. It changes nothing.
func (s Store) SetSteps(ctx context.Context, p Place, change Change, force bool, tell Progress) ([]hold.Step, error) {
	c, err := s.openPlace(ctx, p)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.mayHave(p); err != nil {
		return nil, err
	}
	if err := s.choose(p, c); err != nil {
		return nil, err
	}
	if s.isHeld(c.Project) {
		return nil, atIt(p)
	}
	bounds, _, err := c.bounds(ctx, change, force, tell)
	if err != nil {
		return nil, err
	}
	var steps []hold.Step
	if !c.isWhole() {
		for _, t := range c.order(true) {
			steps = append(steps, markStep(t.Path, c.Project))
		}
	}
	steps = append(steps, boundStep(c.Project, c.fs.mount.Point, bounds))
	if c.State == isSet {
		return steps, nil
	}
	return s.between(c.record, steps, true)
}

// ClearSteps lists what Clear would do now, and refuses what Clear refuses. It changes nothing.
func (s Store) ClearSteps(ctx context.Context, p Place) ([]hold.Step, error) {
	r, err := s.idle(p)
	if err != nil {
		return nil, err
	}
	c, err := s.openRecord(ctx, p, r, func() {})
	if err != nil {
		return nil, err
	}
	defer c.close()
	if _, _, err := c.lifted(); err != nil {
		return nil, err
	}
	if c.isAnothers() {
		return s.forgetSteps(c.Project), nil
	}
	c.State = clearing
	steps := []hold.Step{boundStep(c.Project, c.fs.mount.Point, Bounds{})}
	if !c.Lent {
		for _, t := range c.tops {
			steps = append(steps, unmarkStep(t.Path, c.Project))
		}
	}
	return s.between(c.record, steps, false)
}

// ForgetSteps lists what Forget would do now. It changes nothing.
func (s Store) ForgetSteps(p Place) ([]hold.Step, error) {
	r, err := s.idle(p)
	if err != nil {
		return nil, err
	}
	return s.forgetSteps(r.Project), nil
}

// idle is the record of a place that no weir is working on.
func (s Store) idle(p Place) (record, error) {
	r, err := s.recordOf(p)
	if err == nil && s.isHeld(r.Project) {
		err = atIt(p)
	}
	return r, err
}

// between puts the steps of a change between those of its record: first it says that the change is
// in progress, and in the end that it is set, or nothing.
func (s Store) between(r record, steps []hold.Step, set bool) ([]hold.Step, error) {
	first, err := s.saveStep(r)
	if err != nil {
		return nil, err
	}
	all := append([]hold.Step{first}, steps...)
	if !set {
		return append(all, s.forgetSteps(r.Project)...), nil
	}
	r.State, r.New = isSet, false
	last, err := s.saveStep(r)
	return append(all, last), err
}

func (s Store) saveStep(r record) (hold.Step, error) {
	text, err := state.Text(r)
	return hold.Step{File: s.path(r.Project), Line: text}, err
}

func (s Store) forgetSteps(project uint32) []hold.Step {
	return []hold.Step{{File: s.path(project)}}
}

func markStep(path string, project uint32) hold.Step {
	return hold.Step{Call: fmt.Sprintf("mark %s and all below it as project %d", path, project)}
}

func unmarkStep(path string, project uint32) hold.Step {
	return hold.Step{Call: fmt.Sprintf("unmark %s and all below it, which are in project %d", path, project)}
}

func boundStep(project uint32, mount string, b Bounds) hold.Step {
	return hold.Step{Call: fmt.Sprintf("limit project %d on %s: %s", project, mount, b)}
}
