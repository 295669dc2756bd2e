package planned

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// ChoiceOf is the plan of a target as its owner describes it, and what its annotations ask.
func (m Manager) ChoiceOf(l targets.Listed) plans.Choice {
	unread := m.unread(l) // before what it is about, which may be read meanwhile
	f := factsOf(m.Now(l))
	f.Space, f.Volumes = m.ofSpace(l), m.volumesOf(l)
	choice := m.Config.Choose(f)
	choice.Unread = unread
	return choice
}

// Given compares a target, which its owner has described and which was found, with its plan. It waits for no disk, so
// it does not know what is on record of the target: rules that are in force on other devices than it finds stay, and of one
// of which not all has been read yet no rule is raised. The next look of OfKind knows.
func (m Manager) Given(ctx context.Context, l targets.Listed, t targets.Target) Target {
	one := Target{Name: l.String(), Choice: m.ChoiceOf(l), State: NoPlan, host: m.Host, key: keyOf(l), given: &t}
	return m.compared(ctx, one, t, nil)
}

// PutGiven puts the plan of a target into force that Given has found. It waits for nothing but the
// kernel and systemd, and writes no record: Note does that.
func (m Manager) PutGiven(ctx context.Context, t *Target) error {
	if t.State != Differs {
		return t.Err
	}
	return m.change(ctx, t, t.Name, false)
}

// A Note is what is to be put on record of a target.
type Note struct{ *record }

// NoteOf is the Note of a target that PutGiven has changed. It asks the kernel for the target's group, by the host where
// the target was found: that host is to be open still.
func (m Manager) NoteOf(t Target) *Note {
	next := m.recordOf(t)
	next.Unread = t.Choice.Unread
	return &Note{next}
}

// Note puts on record what PutGiven has put into force, so that it is taken away once the target has
// no plan any more.
func (m Manager) Note(ctx context.Context, n *Note) error {
	unlock, err := lock(ctx, m.Host, kindOf(n.Target))
	if err != nil {
		return err
	}
	defer unlock()
	n.At = now(m.Host.Root)
	if was, err := recordFor(m.Host.Root, n.Target, n.Name); err == nil { // one that cannot be read is written anew
		n.inherit(was)
	}
	return n.saveOf(m.Host.Root)
}

// Check says what is wrong with a pod's annotations: nothing of them can be put into force, or it
// is not allowed.
func (m Manager) Check(all map[string]string) error {
	asked, err := annotations.Parse(all)
	if err != nil {
		return err
	}
	check := func(key, plan string) error {
		if plan == "" {
			return nil
		}
		own := plan
		if c := m.Config.Choose(plans.Facts{Kind: "pod", Own: &own}); c.Refused != "" {
			return fmt.Errorf("annotation %s%s: %w", annotations.Prefix, key, fault.Misusef("allow-labels does not have the plan %s; choose one that it has, or ask an administrator of the node for it", plan))
		}
		return nil
	}
	if err := check("plan", asked.Plan); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(asked.Containers)) {
		if err := check("plan."+name, asked.Containers[name].Plan); err != nil {
			return err
		}
	}
	return nil
}
