package limiting

import (
	"errors"
	"reflect"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// repace makes the pacer hold what the rules of a target's group say now, or release the group if
// how is nil. was is what it held before; if the pacer is not available, it goes on holding that.
func (m Manager) repace(t targets.Target, was *pacer.Job, how *limit.Pacing) ([]note.Note, error) {
	if was == nil && how == nil {
		return nil, nil
	}
	client := m.Host.Pacer()
	var notes []note.Note
	warning, err := client.Hold(t.Group, how)
	if warning != "" {
		notes = append(notes, note.Warningf("pacer", "%s", warning))
	}
	if err == nil {
		return notes, nil
	}
	now, unread := m.Host.JobOf(t.Group)
	switch {
	case unread != nil || reflect.DeepEqual(now, was):
		return notes, errors.Join(err, unread)
	case was == nil:
		return notes, errors.Join(err, client.Remove(now.Limited))
	}
	_, back := client.Add(*was)
	return notes, errors.Join(err, back)
}

// repaceSteps is what repace would do.
func (m Manager) repaceSteps(t targets.Target, was *pacer.Job, d place.Decision) ([]hold.Step, error) {
	want := d.Paced
	switch {
	case d.Escapes != nil:
		return []hold.Step{EscapesStep(t.Group, d)}, nil
	case want == nil && was == nil:
		return nil, nil
	case want == nil:
		return []hold.Step{{Pace: &hold.Pace{Cgroup: t.Group.Path()}}}, nil
	case was != nil:
		return hold.PaceSteps(t.Group, nil, want.WBPS, want.Devices), nil
	}
	members, err := targets.Members(t.Group)
	if err != nil {
		return nil, err
	}
	cells, err := pacer.CellsFor(m.Host.FS, t.Group, members...)
	if err != nil {
		return nil, err
	}
	return hold.PaceSteps(t.Group, cells, want.WBPS, want.Devices), nil
}

// paceLeft is what the pacer is asked once some limits of a group are lifted: to hold what is left
// of the rules, or to release the group. It is asked nothing if it does not hold the group (was is
// nil).
func paceLeft(g cgroupfs.Group, was *pacer.Job, rules []cgroupfs.Rule, lifted []hold.Change) []hold.Step {
	if was == nil {
		return nil
	}
	var left []cgroupfs.Rule
	for _, r := range rules {
		for _, c := range lifted {
			if c.Device == r.Device {
				r.Limit = r.Limit.Overlay(c.Limit)
			}
		}
		left = append(left, r)
	}
	pace := hold.Pace{Cgroup: g.Path()}
	if job, some := pacer.JobFor(g, left); some {
		pace.WBPS, pace.Devices, pace.Escapes = job.WBPS, job.Devices, was.Count == pacer.CountEscaped
	}
	return []hold.Step{{Pace: &pace}}
}

// EscapesStep is the request that makes the pacer hold what escapes a group. It moves no process
// before something escapes.
func EscapesStep(g cgroupfs.Group, d place.Decision) hold.Step {
	return hold.Step{Pace: &hold.Pace{Cgroup: g.Path(), WBPS: d.Escapes.WBPS, Devices: d.Escapes.Devices, Escapes: true}}
}
