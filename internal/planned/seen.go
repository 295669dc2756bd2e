package planned

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plans"
)

// A seen is what the processes of one group had mounted when weir looked. A process can unmount a disk, or hide it from
// weir, and another one of the group can write to it all the same. So a limit that is for what they have mounted stays on
// a disk that they had, as long as the disk is there and the target is to have such a limit.
type seen struct {
	Group   uint64          `json:"group"`             // its inode
	Disks   []blkdev.Number `json:"disks,omitempty"`   // all that they had, if there was a limit on all
	Volumes []seenVolume    `json:"volumes,omitempty"` // if there was a limit on one
}

// A seenVolume is a volume with a device that it is on.
type seenVolume struct {
	Name   string        `json:"name"`             // annotations.On's
	Path   string        `json:"path,omitempty"`   // the same
	Driver bool          `json:"driver,omitempty"` // a CSI driver keeps the limit
	Device blkdev.Number `json:"device"`
}

func (s *seen) is(other *seen) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.Group == other.Group && slices.Equal(s.Disks, other.Disks) && slices.Equal(s.Volumes, other.Volumes)
}

// add adds what was seen of the same group before.
func (s *seen) add(before *seen) {
	if before == nil {
		return
	}
	for _, dev := range before.Disks {
		s.addDisk(dev)
	}
	for _, v := range before.Volumes {
		s.addVolume(v)
	}
}

func (s *seen) addDisk(dev blkdev.Number) {
	if s != nil && !slices.Contains(s.Disks, dev) {
		s.Disks = append(s.Disks, dev)
	}
}

func (s *seen) addVolume(v seenVolume) {
	if s != nil && !slices.Contains(s.Volumes, v) {
		s.Volumes = append(s.Volumes, v)
	}
}

// hasDrivers reports whether a device is that of a volume whose driver keeps the limit.
func (s *seen) hasDrivers(dev blkdev.Number) bool {
	return slices.ContainsFunc(s.Volumes, func(v seenVolume) bool { return v.Driver && v.Device == dev })
}

// of are the devices of a volume.
func (s *seen) of(on annotations.On, driver bool) (all []blkdev.Number) {
	if s == nil {
		return nil
	}
	for _, v := range s.Volumes {
		if v.isOf(on, driver) {
			all = append(all, v.Device)
		}
	}
	return all
}

func (v seenVolume) isOf(on annotations.On, driver bool) bool {
	return v.Name == on.Volume && v.Path == on.Path && v.Driver == driver
}

// counts reports whether a choice has a limit on a volume, or may have one.
func (v seenVolume) counts(c plans.Choice) bool {
	if v.Driver {
		return c.Unread.Volumes || slices.ContainsFunc(c.Volumes, func(on annotations.On) bool { return v.isOf(on, true) })
	}
	return c.Unread.Own || slices.ContainsFunc(c.On, func(on annotations.On) bool { return v.isOf(on, false) })
}

// seenIn is what is on record of a group of this boot; nil: nothing. Another boot has other groups of the same numbers, and
// may have other devices. An older weir noted the limits alone, which are those of the plan of the same name.
func (r *record) seenIn(group uint64, plan, boot string) *seen {
	switch {
	case r == nil || r.At.Boot != boot:
		return nil
	case r.Seen != nil && r.Seen.Group == group:
		return r.Seen
	case r.Seen != nil || r.Group == nil || *r.Group != group || r.Plan != plan:
		return nil
	}
	its := &seen{Group: group}
	for _, d := range r.Limits {
		its.addDisk(d.Device)
	}
	return its
}

// seenOf is what was seen of a target's group before, as far as it counts still; nil: the group is not known, or it is the
// target's owner who tells its disks.
func (m Manager) seenOf(t *Target) *seen {
	if t.group == nil || t.found == nil || len(t.found.Disks)+len(t.found.ReadDisks) > 0 || t.found.NoDisks != nil {
		return nil
	}
	id, err := t.group.ID()
	if err != nil {
		return nil // it has ended
	}
	its := &seen{Group: id}
	before := t.record.seenIn(id, t.Choice.Name(), now(m.Host.Root).Boot)
	if before == nil {
		return its
	}
	for _, dev := range before.Disks {
		if m.Host.Devices().Exists(dev) {
			its.addDisk(dev)
		}
	}
	for _, v := range before.Volumes {
		if v.counts(t.Choice) && m.Host.Devices().Exists(v.Device) {
			its.addVolume(v)
		}
	}
	return its
}

// everywhere notes the disks that a limit without a place has found, and adds those that it had found before. Rates that
// are for one of these disks already come first.
func (m Manager) everywhere(ctx context.Context, all, found []place.Placed, l limit.Limit, s *seen) ([]place.Placed, error) {
	if s == nil || l.IsZero() {
		return all, nil
	}
	for _, dev := range slices.Clone(s.Disks) {
		if slices.ContainsFunc(found, func(p place.Placed) bool { return p.Device.Number == dev }) {
			continue
		}
		its, err := m.standing(ctx, dev, l)
		if err != nil {
			return nil, err
		}
		for _, one := range its {
			if i := indexOf(all, one); i >= 0 {
				all[i].Limit = l.Overlay(all[i].Limit)
			} else {
				all = append(all, one)
			}
		}
	}
	for _, p := range found {
		s.addDisk(p.Device.Number)
	}
	return all, nil
}

// standing is a limit on a device that was known before; none: the device is gone.
func (m Manager) standing(ctx context.Context, dev blkdev.Number, l limit.Limit) (all []place.Placed, err error) {
	chain, err := m.Host.Devices().Resolve(ctx, dev.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, d := range chain.Devices {
		all = append(all, place.Placed{Chain: chain, Device: d, Limit: l})
	}
	return all, err
}

// asBefore is the choice of a target of which not all has been read: if it has nothing as far as is known, and has had
// something, what is on record counts.
func (r *record) asBefore(c plans.Choice, t *Target) plans.Choice {
	if c.Before != "" {
		c.Before, c.By = "", ""
	}
	if c.IsNone() && len(r.keptBy(t)) > 0 {
		c.Before, c.By = r.Plan, "what weird was told before"
	}
	return c
}

// keptBy is kept for the target that the record was found for. An older weir's goes by the name of a pod, which another pod
// may have had. After a boot nothing of it is in force, and other devices may have the numbers.
func (r *record) keptBy(t *Target) []deviceRule {
	if r == nil || r.At.Boot != now(t.host.Root).Boot || r.older != "" && (t.group == nil || r.isBegun(*t.group)) {
		return nil
	}
	return r.kept(t.Choice.Unread)
}

// leaveInForce leaves rates in force that nobody may take away or raise who does not know what is on record: those of
// devices from the nth row on, which were not found, and all if something of the target has not been read.
func (t *Target) leaveInForce(n int) {
	for i := range t.Rows {
		if d := &t.Rows[i]; i >= n || t.Choice.Unread != (plans.Unread{}) {
			d.Plan = lower(d.Plan, d.Now)
		}
	}
}

// lower is a limit with the lower one of two rates, each.
func lower(l, other limit.Limit) limit.Limit {
	for _, k := range limit.Keys {
		is, bound := other.Get(k).Number()
		if was, bounded := l.Get(k).Number(); bound && (!bounded || is < was) {
			l = l.With(k, other.Get(k))
		}
	}
	return l
}
