package why

import (
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/systemd"
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
		return []Finding{{Code: "unit-differs", Severity: Hurts, Evidence: []Evidence{{g.Dir, "of unit " + g.Owner.Unit}},
			Text: "The group is systemd's, which on cgroup v1 does not know of this limit: a restart of " + g.Owner.Unit + " loses it."}}
	}
	if g.Unit == nil || g.Unit.Err != nil {
		return nil
	}
	var found []Finding
	for _, r := range g.Rules {
		kept := g.Unit.Limits[r.Device]
		if sameBounds(kept, r.Limit) {
			continue
		}
		if g.Owner.Kind != "systemd" && !kept.Bounds() {
			continue // its maker wrote the rule, and systemd has nothing to write over it
		}
		value := "no limit on " + r.Device.String()
		if kept.Bounds() {
			value = fmt.Sprintf("%s: %s", r.Device, boundsOf(kept))
		}
		found = append(found, Finding{Code: "unit-differs", Severity: Hurts,
			Evidence: []Evidence{g.ruleEvidence(r), {"systemctl show " + g.Unit.Name, value}},
			Text:     "The group is systemd's, which keeps another limit for " + g.Unit.Name + " and will write that over this one, at the latest when it reloads.",
			Fixes:    []Fix{{Text: "set it through systemd, which weir does", Lines: []string{fmt.Sprintf("weir set %s %s --on %s", f.Target, flagsOf(r.Limit), r.Device)}}}})
	}
	return found
}

// A Loose group is one that systemd has not made, and whose limits it can end.
type Loose struct {
	Slice  string // the units of which it does that for
	Anchor string // the unit of weir's that would keep it from that, and is not there
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
		Text: fmt.Sprintf("systemd has not made this group: when the last unit in %s that needs the io controller ends, it takes that away from the group, and the limit with it.", g.Loose.Slice)}
	if g.Version == cgroupfs.V1 {
		one.Text = fmt.Sprintf("systemd has not made this group: when the first unit in %s asks for disk I/O accounting, it moves processes out of the group, and when the last that did ends it removes such groups, and the limit with it.", g.Loose.Slice)
	}
	var lines []string
	for _, r := range g.Rules {
		if r.Limit.Bounds() {
			one.Evidence = append(one.Evidence, g.ruleEvidence(r))
			lines = append(lines, fmt.Sprintf("weir set %s %s --on %s", f.Target, flagsOf(r.Limit), f.nodeOf(r.Device)))
		}
	}
	one.Evidence = append(one.Evidence, Evidence{"systemctl is-active " + g.Loose.Anchor, "inactive"})
	one.Fixes = []Fix{{Text: "have weir set it, which starts that unit, an empty slice that keeps systemd from it until the next boot", Lines: lines[:1]}}
	return []Finding{one}
}
