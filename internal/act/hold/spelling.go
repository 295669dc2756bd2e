package hold

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A spelling is how a plan names the devices in a unit's settings. systemd writes a whole line
// of io.max for each name of a device, and its versions differ in which name they write last.
// So all names have to say the same of all four rates, and only one name may stay, except those
// in the unit's own files.
type spelling struct {
	settings []journalSetting
	dropped  []journalSetting // of those, what they said
	drop     []string         // spellings that systemd is to forget
	above    []string         // of those, names of devices on the one that they limit
	rules    []Change         // what is to be in force, all four rates of each device
	written  []Change         // of those, what weir writes because systemd goes past the device
	unkept   []limit.Key      // rates that systemd does not keep over boots now
	fleeting []string         // what is kept over boots under a name that may be another disk's then
	astray   []string         // names of devices that systemd goes past: it limits another device under them
	unsure   []string         // names whose way ends at the device or at another one
}

// spell reads what systemd keeps and what is in force, and merges the plan into it.
func (p Plan) spell(ctx context.Context, conn units) (spelling, error) {
	has, err := conn.IOLimits(ctx, p.Unit)
	if err != nil {
		return spelling{}, err
	}
	has = p.settle(has)
	var s spelling
	if p.Persist {
		kept, err := conn.Kept(p.Unit)
		if err != nil {
			return spelling{}, err
		}
		s.unkept = without(limit.Keys[:], kept)
	}
	for _, c := range p.Changes {
		now, err := p.inForce(c.Device)
		if err != nil {
			return spelling{}, err
		}
		name := ""
		if p.Persist && !p.Lift {
			// If there is no lasting name, the device number is used, and tell says so.
			name, _ = conn.Lasting(ctx, c.Device)
		}
		s.add(p, c, has, now, name)
	}
	return s, nil
}

// inForce reads the rule of a device.
func (p Plan) inForce(dev blkdev.Number) (limit.Limit, error) {
	now, err := p.Group.Rule(dev)
	if fault.IsUnsupported(err) {
		return limit.None, nil // systemd enables io for a unit with its first limit
	}
	return now, err
}

// add spells one change. lasting is a name of its device that survives boots; it may be empty.
func (s *spelling) add(p Plan, c Change, all []systemd.PathLimit, now limit.Limit, lasting string) {
	var has []systemd.PathLimit
	for _, l := range all {
		switch on, known := l.On(); {
		case known && on == c.Device:
			has = append(has, l)
		case !known && slices.Contains(l.Ends(), c.Device):
			s.unsure = append(s.unsure, l.Path)
		case len(l.Devices) > 1 && l.Devices[0] == c.Device:
			s.astray = append(s.astray, l.Path)
		}
	}
	want := c.Limit
	if !p.Lift {
		want = union(c.Limit, now, systemd.Together(has, c.Device))
	}
	s.rules = append(s.rules, Change{c.Device, want})
	past := p.goesPast(c.Device)
	if past && now.Overlay(want) != now {
		s.written = append(s.written, Change{c.Device, want})
	}
	name := ""
	if !past {
		name = p.nameOf(c.Device, has, lasting)
		lifted := p.Lift && len(has) > 0
		if !lifted && !slices.ContainsFunc(has, func(l systemd.PathLimit) bool { return l.Path == name }) {
			has = append(has, systemd.PathLimit{Path: name, Limit: limit.None})
		}
	}
	for _, l := range has {
		if after := changed(l.Limit, want, c.Limit); !after.IsZero() {
			s.settings = append(s.settings, journalSetting{l.Path, turn{l.Limit, after}})
		}
		if l.Path != name && !past && !l.Own && p.forgets(all) {
			s.drop = append(s.drop, l.Path)
			if len(l.Devices) > 1 {
				s.above = append(s.above, l.Path)
			}
			s.dropped = append(s.dropped, journalSetting{l.Path, turn{Before: l.Limit}})
		}
	}
	if p.Persist && !p.Lift && !past && !systemd.Lasts(name) {
		s.fleeting = append(s.fleeting, name)
	}
}

// union returns all four rates: as asked, else as in force, else as kept.
func union(asked, now, kept limit.Limit) limit.Limit {
	all := limit.None
	for _, k := range limit.Keys {
		for _, from := range []limit.Limit{kept, now} {
			if _, bound := from.Get(k).Number(); bound {
				all = all.With(k, from.Get(k))
			}
		}
	}
	return all.Overlay(asked)
}

// changed returns the rates to set so that a name says what is wanted: the rates that are asked
// for, and those that it has with another value.
func changed(says, want, asked limit.Limit) limit.Limit {
	var set limit.Limit
	for _, k := range limit.Keys {
		is, bound := says.Get(k).Number()
		to, bounds := want.Get(k).Number()
		if asked.Get(k).IsSet() || want.Get(k).IsSet() && (bound != bounds || is != to) {
			set = set.With(k, want.Get(k))
		}
	}
	return set
}

// forgets reports whether systemd is to forget names that say what another one says, too. Where it keeps limits
// over boots it does so only with a change that is kept itself: else a kept limit would be lost, and the reload
// that it takes would put the kept limits in the place of those set since.
func (p Plan) forgets(all []systemd.PathLimit) bool {
	return !p.Lift && (p.Persist || !slices.ContainsFunc(all, func(l systemd.PathLimit) bool { return l.Kept }))
}

// nameOf chooses the name that stays: one in the unit's own files, else one that survives
// boots, else the first. Limits that are kept over boots use a name that survives boots, if
// there is one. A name of another device, from which systemd goes on to this one, comes after the
// device's own, and stays only if it survives boots or is in the unit's own files.
func (p Plan) nameOf(dev blkdev.Number, has []systemd.PathLimit, lasting string) string {
	prefer := []func(systemd.PathLimit) bool{
		func(l systemd.PathLimit) bool { return l.Own && (!p.Persist || systemd.Lasts(l.Path)) },
		func(l systemd.PathLimit) bool { return len(l.Devices) == 1 && systemd.Lasts(l.Path) },
	}
	others := []func(systemd.PathLimit) bool{
		func(l systemd.PathLimit) bool { return systemd.Lasts(l.Path) },
		func(l systemd.PathLimit) bool { return len(l.Devices) == 1 },
	}
	for _, is := range prefer {
		if i := slices.IndexFunc(has, is); i >= 0 {
			return has[i].Path
		}
	}
	if p.Persist && lasting != "" {
		return lasting
	}
	for _, is := range others {
		if i := slices.IndexFunc(has, is); i >= 0 {
			return has[i].Path
		}
	}
	return systemd.NodeOf(dev)
}

// accounting is the setting with which systemd leaves the io controller to a unit whose rules weir writes:
// it knows no limit for which the unit needs it. It stays until the next boot. systemd answers after the unit and
// its slices have the controller: bus_unit_set_properties commits, and unit_realize_cgroup puts off siblings alone.
func (p Plan) accounting() []systemd.Setting {
	if p.Lift || !slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Limit.Bounds() && p.goesPast(c.Device) }) {
		return nil
	}
	return []systemd.Setting{accounting(cgroupfs.V2)}
}

// set sends the settings to systemd. For a permanent change, the rates that it names are kept
// over boots, and so are those that were kept before; the other rates last as long as before.
func (s spelling) set(ctx context.Context, conn units, p Plan) error {
	var lasting []systemd.Setting
	passing := p.accounting()
	for _, one := range s.settings {
		if !p.Persist {
			passing = append(passing, systemd.IOLimitAt(one.Path, one.After)...)
			continue
		}
		others := without(s.unkept, s.asked(p))
		lasting = append(lasting, systemd.IOLimitAt(one.Path, only(one.After, without(limit.Keys[:], others)))...)
		passing = append(passing, systemd.IOLimitAt(one.Path, only(one.After, others))...)
		if p.Lift { // the unit's own file may set a limit that the drop-in overruled
			passing = append(passing, systemd.IOLimitAt(one.Path, only(one.After, without(limit.Keys[:], others)))...)
		}
	}
	if len(lasting) > 0 {
		if err := conn.Set(ctx, p.Unit, true, lasting); err != nil {
			return err
		}
	}
	if len(passing) == 0 {
		return nil
	}
	return conn.Set(ctx, p.Unit, false, passing)
}

// asked returns the rates that the plan's changes name.
func (s spelling) asked(p Plan) []limit.Key {
	var keys []limit.Key
	for _, c := range p.Changes {
		for _, k := range limit.Keys {
			if c.Limit.Get(k).IsSet() && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// ensure makes sure that all four rates of each device are in force.
func (s spelling) ensure(p Plan) error {
	p.Changes = s.rules
	return p.Ensure()
}

// tell reports names that the administrator spelled in another way, and names that may mean
// another disk after a boot.
func (s spelling) tell(p Plan) {
	for _, path := range s.drop {
		is := "a second name of the same device"
		if slices.Contains(s.above, path) {
			is = "but sets them on the device below"
		}
		p.Note(fmt.Sprintf("systemd also keeps limits of %s on %s, %s; weir puts them all under one name", p.Unit, path, is))
	}
	for _, path := range s.astray {
		p.Note(fmt.Sprintf("systemd keeps a limit of %s on %s, but sets it on a device below; that limit stays as it is", p.Unit, path))
	}
	for _, path := range s.unsure {
		p.Note(fmt.Sprintf("systemd keeps a limit of %s on %s, but sets it on one of two devices below; weir cannot tell on which, and that setting stays as it is", p.Unit, path))
	}
	for _, path := range s.fleeting {
		p.Note(fmt.Sprintf("systemd keeps the limits of %s on %s over boots, but that name may mean another disk then: the device has no link in /dev/disk/by-id, and none of its file systems is mounted", p.Unit, path))
	}
}

// unasked is the spelling where systemd is not asked, and has these settings as far as is known.
func (p Plan) unasked(has []systemd.PathLimit) spelling {
	s := spelling{unkept: limit.Keys[:]}
	for _, c := range p.Changes {
		now := systemd.Together(has, c.Device)
		if p.goesPast(c.Device) {
			now, _ = p.inForce(c.Device) // all rates are unset where they cannot be read: those asked for are written
		}
		s.add(p, c, has, now, "")
	}
	return s
}

func (p Plan) unitSteps(s spelling) []Step {
	var steps []Step
	for _, property := range p.accounting() {
		steps = append(steps, Step{Unit: p.Unit, Property: property.String()})
	}
	asked := s.asked(p)
	for _, one := range s.settings {
		for _, k := range limit.Keys {
			for _, property := range systemd.IOLimitAt(one.Path, only(one.After, []limit.Key{k})) {
				lasts := p.Persist && (slices.Contains(asked, k) || !slices.Contains(s.unkept, k))
				steps = append(steps, Step{Unit: p.Unit, Property: property.String(), Persist: lasts})
			}
		}
	}
	for _, path := range s.drop {
		for _, property := range systemd.IOLimitAt(path, limit.None) {
			steps = append(steps, Step{Unit: p.Unit, Property: property.String(), Persist: p.Persist})
		}
	}
	for _, w := range (Plan{Group: p.Group, Changes: s.written}).writes() {
		steps = append(steps, Step{File: w.File, Line: w.Line})
	}
	return append(steps, p.fileSteps()...)
}
