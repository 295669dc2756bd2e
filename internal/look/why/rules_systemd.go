package why

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// unitDiffers: systemd owns the group, and would write another limit
// (systemd.io, CGROUP_DELEGATION: it writes its units' files whenever it likes).
func unitDiffers(f Facts) []Finding {
	g := f.Group
	if g.Owner.Unit == "" || len(g.Rules) == 0 {
		return nil
	}
	if g.Version == cgroupfs.V1 && g.Owner.Kind != "systemd" {
		return nil // and whoever made the unit has findings of his own
	}
	if g.Version == cgroupfs.V1 {
		return unitLacks(g)
	}
	if g.Unit == nil || g.Unit.Err != nil {
		return nil
	}
	var found []Finding
	for _, r := range g.Rules {
		names := g.Unit.Limits[r.Device]
		if conflict(names) {
			continue // see unitConflicts
		}
		var kept limit.Limit
		if len(names) > 0 {
			kept = names[0].Limit
		}
		if sameBounds(kept, r.Limit) {
			continue
		}
		if g.Owner.Kind != "systemd" && !kept.Bounds() {
			continue // its maker wrote the rule, and systemd has nothing to write over it
		}
		restarts := systemd.Restarts(g.Unit.Name)
		if !kept.Bounds() && slices.Contains(g.Unit.Past, r.Device) {
			if restarts { // else nothing removes it
				found = append(found, unitCannot(g, r))
			}
			continue
		}
		one := Finding{Code: "unit-differs", Severity: Hurts,
			Evidence: []Evidence{g.ruleEvidence(r), {"systemctl show " + g.Unit.Name, "no limit on " + r.Device.String()}},
			Text:     "systemd owns this group, but keeps no limit on " + r.Device.String() + " for " + g.Unit.Name + ": nobody keeps the limit that is in force, and a restart of the unit removes it.",
			Fixes:    []Fix{{Text: "remove it, if it is left over", Lines: []string{fmt.Sprintf("weir clear %s --on %s", quote(f.Target), r.Device)}}}}
		if !restarts {
			one.Text = "systemd owns this group, but keeps no limit on " + r.Device.String() + " for " + g.Unit.Name + ": nobody keeps the limit that is in force."
		}
		setIt := []string{fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsOf(r.Limit), r.Device)}
		if kept.Bounds() {
			one.Evidence[1].Value = fmt.Sprintf("%s: %s", r.Device, boundsOf(kept))
			one.Text = "systemd owns this group, and keeps another limit for " + g.Unit.Name + "; it will replace the one in force, at the latest at the next daemon-reload."
			one.Fixes = []Fix{{Text: "set the limit through systemd, as weir does", Lines: setIt}}
		} else if r.Limit.Bounds() {
			one.Fixes = append(one.Fixes, Fix{Text: "let systemd keep it", Lines: setIt})
		}
		found = append(found, one)
	}
	return found
}

// unitCannot: systemd would limit a device below this one, so weir has written the limit. That is no fault of what
// was just set, but a restart of the unit loses it.
func unitCannot(g Group, r cgroupfs.Rule) Finding {
	return Finding{Code: "unit-differs", Severity: Note,
		Evidence: []Evidence{g.ruleEvidence(r), {"systemctl show " + g.Unit.Name, "no limit on " + r.Device.String()}},
		Text:     "systemd owns this group, but cannot limit " + r.Device.String() + " itself, only the device below it: a restart of " + g.Unit.Name + " removes this limit. weird sets it again if a plan has it."}
}

// unitLacks: systemd keeps no limits on cgroup v1, and weir does not set this one again. That is no fault of
// what was just set, but a restart of the unit loses it.
func unitLacks(g Group) []Finding {
	if !systemd.Restarts(g.Owner.Unit) {
		return nil
	}
	one := Finding{Code: "unit-differs", Severity: Note,
		Text: "systemd owns this group, and on cgroup v1 it does not know this limit: a restart of " + g.Owner.Unit + " loses it."}
	var lines []string
	for _, r := range g.Rules {
		kept := ruleOn(g.Kept.Rules, r.Device)
		if r.Limit.Bounds() && !sameBounds(kept, r.Limit) && !differs(kept, r.Limit) { // else weir sets it again, or see recordDiffers
			one.Evidence = append(one.Evidence, g.evidenceOn(r.Device))
			lines = append(lines, fmt.Sprintf("weir set %s %s --on %s --persist", quote("unit:"+g.Owner.Unit), flagsOf(r.Limit), r.Device))
		}
	}
	if g.Kept.Unknown || len(lines) == 0 {
		return nil
	}
	one.Evidence = append(one.Evidence, Evidence{g.Dir, "of unit " + g.Owner.Unit})
	if strings.HasSuffix(g.Owner.Unit, ".service") { // what weir can be started with
		one.Fixes = []Fix{{Text: "let weir set the limit again at each start of the unit", Lines: lines}}
	}
	return []Finding{one}
}

// conflict reports whether the names of a device say different limits.
func conflict(names []Spelling) bool {
	return slices.ContainsFunc(names, func(s Spelling) bool { return !sameBounds(s.Limit, names[0].Limit) })
}

// unitConflicts: systemd has a device under two names, and writes a whole line for each
// (its cgroup_apply_io_device_limit), so that one takes the rates of the other away.
func unitConflicts(f Facts) []Finding {
	g := f.Group
	if g.Version != cgroupfs.V2 || g.Unit == nil || g.Unit.Err != nil {
		return nil
	}
	devices := slices.SortedFunc(maps.Keys(g.Unit.Limits), func(x, y blkdev.Number) int { return strings.Compare(x.String(), y.String()) })
	var found []Finding
	told := map[string]bool{} // devices that are on each other have the same names
	for _, dev := range devices {
		names := g.Unit.Limits[dev]
		if !conflict(names) {
			continue
		}
		one := Finding{Code: "unit-conflict", Severity: Hurts,
			Text: fmt.Sprintf("systemd keeps limits of %s for one device under %d names, and writes all four rates for each name: the name that it writes last overrides the others.", g.Unit.Name, len(names))}
		together, key := limit.None, ""
		for _, n := range names {
			key += n.Path + "\n"
			one.Evidence = append(one.Evidence, Evidence{"systemctl show " + g.Unit.Name, fmt.Sprintf("%s: %s", n.Path, boundsOf(n.Limit))})
			for _, k := range limit.Keys {
				rate, bound := n.Limit.Get(k).Number()
				if least, has := together.Get(k).Number(); bound && (!has || rate < least) {
					together = together.With(k, n.Limit.Get(k))
				}
			}
		}
		if told[key] {
			continue
		}
		told[key] = true
		inForce := "no limit on " + dev.String()
		for _, r := range g.Rules {
			if r.Device == dev {
				together, inForce = together.Overlay(r.Limit.Bound()), fmt.Sprintf("%s: %s", dev, boundsOf(r.Limit))
			}
		}
		one.Evidence = append(one.Evidence, Evidence{path.Join(g.Dir, "io.max"), inForce})
		one.Fixes = []Fix{{Text: "let weir set them all under one name", Lines: []string{fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsOf(together), dev)}}}
		found = append(found, one)
	}
	return found
}

// A Loose group is one that systemd did not make, and whose limits it can end.
type Loose struct {
	Slice  string // systemd does that when units of this slice start or stop
	Anchor string // the slice that weir starts to keep systemd from that, and that is not there
}

// looseness tells whether systemd can end the limits of a group that it has not made: see
// systemd's Anchor. nil: it cannot.
func (g *Group) looseness(io *cgroupfs.Hierarchy) *Loose {
	slice := systemd.Loosens(io.Version == cgroupfs.V1, g.Path)
	bound := slices.ContainsFunc(g.Rules, func(r cgroupfs.Rule) bool { return r.Limit.Bounds() })
	if !bound || slice == "" || hold.IsAnchored(io, slice) {
		return nil
	}
	return &Loose{slice, systemd.AnchorOf(slice)}
}

// mayBeLost: systemd manages the controller in a group that others have made, and does not
// know of the limit.
func mayBeLost(f Facts) []Finding {
	g := f.Group
	if g.Loose == nil {
		return nil
	}
	one := Finding{Code: "systemd-may-lift", Severity: Hurts,
		Text: fmt.Sprintf("systemd did not make this group. When the last unit in %s that needs the io controller stops, systemd disables the controller for this group, and the limit is lost.", g.Loose.Slice)}
	if g.Version == cgroupfs.V1 {
		one.Text = fmt.Sprintf("systemd did not make this group. When the first unit in %s asks for disk I/O accounting, systemd moves processes out of the group. When the last such unit stops, systemd removes such groups, and the limit is lost.", g.Loose.Slice)
	}
	var lines []string
	for _, r := range g.Rules {
		if r.Limit.Bounds() {
			one.Evidence = append(one.Evidence, g.ruleEvidence(r))
			lines = append(lines, fmt.Sprintf("weir set %s %s --on %s", quote(f.Target), flagsOf(r.Limit), quote(f.nodeOf(r.Device))))
		}
	}
	one.Evidence = append(one.Evidence, Evidence{"systemctl is-active " + g.Loose.Anchor, "inactive"})
	one.Fixes = []Fix{{Text: "let weir set the limit: it starts that unit, an empty slice that keeps systemd from doing so until the next boot", Lines: lines[:1]}}
	return []Finding{one}
}
