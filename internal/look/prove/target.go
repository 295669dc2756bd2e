package prove

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
)

// A bound is what binds a target: its own rules, and those around it.
type bound struct {
	inside   cgroupfs.Group // in which loads are started
	bindings []cgroupfs.Binding
	own      []cgroupfs.Binding // of the target's group itself
	job      *pacer.Job         // nil: the pacer does not hold it
}

// findTarget finds where a target is measured: on each limited device, in a directory that the
// target has mounted.
func (t *Trial) findTarget(ctx context.Context) error {
	b, err := t.bound()
	if err != nil {
		return err
	}
	views, err := viewsOf(*t.request.Target)
	if err != nil {
		return err
	}
	defer views.close()
	for _, binding := range b.bindings {
		at, err := t.placeOf(ctx, b, binding)
		if err != nil {
			return err
		}
		if len(binding.Above) > 0 {
			t.notice("limits-above", "on %s, limits of %s apply to it too", at.Device.Node, strings.Join(binding.Above, ", "))
		}
		if t.request.Observe == 0 {
			reached, err := t.reach(ctx, &at, views)
			if err != nil {
				return err
			}
			if !reached {
				t.withoutDirectory(at)
				continue
			}
			t.closing = append(t.closing, func() error {
				_ = at.Folder.Close() // nothing is written to it
				return nil
			})
		}
		t.places = append(t.places, at)
	}
	if len(t.places) == 0 {
		return refused(t.request.Target.String(), "weir can create a file on none of its limited devices", fault.NameSpot)
	}
	if t.request.Observe == 0 {
		t.Notes = append(t.Notes, note.Infof("inside", "weir's loads run inside %s and share its limits and its memory; nothing is left behind", b.inside.Path()))
	}
	return nil
}

// withoutDirectory notes a limited device that cannot be measured. Where directories were named, the
// question is about the devices of these.
func (t *Trial) withoutDirectory(at Place) {
	const why = "weir finds no directory of the target on it where it can create a file"
	t.Notes = append(t.Notes, note.Noticef("no-directory", "%s (%s) is limited, but %s", at.Device.Node, at.Device.Number, why).With(fault.Remedy{Do: fault.NameOne}))
	if len(t.request.Dirs) == 0 {
		t.untried = append(t.untried, at.untried(nil, func(limit.Key) (string, fault.Do) { return why, fault.NameOne })...)
	}
}

// bound reads what binds the target.
func (t *Trial) bound() (b bound, err error) {
	group := t.request.Target.Group
	b.inside = group
	if t.request.Observe == 0 {
		if b.inside, err = group.Inside(); err != nil {
			return b, err
		}
	}
	if b.bindings, err = b.inside.Bindings(); err != nil {
		return b, err
	}
	b.bindings = slices.DeleteFunc(b.bindings, func(b cgroupfs.Binding) bool { return !b.Limit.Bounds() })
	if len(b.bindings) == 0 {
		return b, refused(t.request.Target.String(), "cgroup "+group.Path()+" has no disk I/O limit", fault.SetFirst)
	}
	if b.job, err = t.host.JobOf(group); err != nil {
		return b, err
	}
	b.own, err = group.Bindings()
	return b, err
}

// limited is the group whose rules bind the target on a device: its own, or, where a group on
// the way to the loads' has a lower one, theirs.
func (b bound) limited(target cgroupfs.Group, on cgroupfs.Binding) cgroupfs.Group {
	limited := target
	if !slices.ContainsFunc(b.own, func(o cgroupfs.Binding) bool { return o.Device == on.Device && o.Limit == on.Limit }) {
		limited = b.inside
	}
	for limited.Hierarchy().Version == cgroupfs.V2 && !limited.IsRoot() && !limited.Offers("io") {
		limited = limited.Parent() // it is what is charged, and limited
	}
	return limited
}

// placeOf makes the place of one binding, without a directory.
func (t *Trial) placeOf(ctx context.Context, b bound, on cgroupfs.Binding) (Place, error) {
	group := t.request.Target.Group
	at := Place{Host: t.host.Launch(), Target: b.limited(group, on), Inside: b.inside, Limit: on.Limit, Unit: t.request.Target.Owner.Unit}
	if b.job != nil && b.job.Lapsed == "" && slices.Contains(b.job.Devices, on.Device) {
		at.Paced, at.Escapes = b.job.Count == pacer.CountWritten, b.job.Count == pacer.CountEscaped
	}
	if b.job != nil && group.Hierarchy().Version == cgroupfs.V1 {
		cells, err := b.job.Cells(t.host.FS)
		if err != nil {
			return at, err
		}
		if len(cells) > 0 { // else the pacer brings the load to one
			at.Stopped = cells[0]
		}
	}
	var err error
	at.Device, err = t.host.Devices().Device(ctx, on.Device)
	return at, err
}
