package why

import (
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/limit"
)

// escapes: the kernel charges writes to another group's file to that group (foreignInode).
// weir's pacer holds them if it counts them for the group. This finding says so, or that
// nothing holds them.
func escapes(f Facts) []Finding {
	if f.IO == nil || !f.limited() {
		return nil
	}
	var held, not []int
	for i, p := range f.Places {
		by := f.foreignBy(p)
		switch {
		case by == nil || !p.Writeback || len(f.foreignAt(p)) > 0: // foreignInode says it
		case by.Holds():
			held = append(held, i)
		case p.OwnersErr == nil && !f.Remote: // else foreignInode has said that it cannot be told
			not = append(not, i)
		}
	}
	var found []Finding
	if len(held) > 0 {
		found = append(found, Finding{Code: "escapes-paced", Severity: Note, cells: throughCache.at(held...), Evidence: f.escapesRecord(),
			Text:  "The kernel charges writes to another group's file to that group; " + f.escapesHeld() + ".",
			Fixes: []Fix{{Text: "to turn the pacer off and leave such writes unheld: --hold kernel"}}})
	}
	if len(not) > 0 {
		found = append(found, Finding{Code: "escapes-not-held", Severity: Note, cells: throughCache.at(not...),
			Evidence: f.escapesMissing(),
			Text:     "The kernel charges writes to another group's file to that group, and nothing holds them here.",
			Fixes:    f.escapesFix(f.Places[not[0]])})
	}
	for _, i := range held {
		if why := f.foreignBy(f.Places[i]).Why; why != "" {
			found = append(found, Finding{Code: "escapes-bytes-only", Severity: Note, cells: throughCache.at(i),
				Text: "The limit on operations does not apply to writes to other groups' files: " + why + "."})
		}
	}
	return found
}

// escapesHeld says what holds writes to other groups' files.
func (f Facts) escapesHeld() string {
	g, stops := f.Group, "pauses the group's processes until the average is back at the limit"
	switch {
	case g.Paced != nil && f.decide().Paced != nil:
		held := "weir's pacer holds it: the pacer counts all buffered writes of the group, and " + stops
		return held + missed(g.Paced.Missed)
	case g.Escapes != nil:
		return "weir's pacer holds it: the pacer counts with BPF what escapes the limit, and " + stops + missed(g.Escapes.Missed)
	case f.decide().Paced != nil:
		return "weir's pacer would hold it: the pacer would count all buffered writes of the group, and pause its processes until the average is back at the limit"
	}
	return "weir's pacer would hold it: the pacer would count with BPF what escapes the limit, and pause the group's processes until the average is back at the limit"
}

// missed says which processes the pacer cannot pause.
func missed(whom string) string {
	if whom == "" {
		return ""
	}
	return ". But " + whom
}

// escapesRecord is what was read of the pacer.
func (f Facts) escapesRecord() []Evidence {
	switch g := f.Group; {
	case g.Paced != nil:
		return []Evidence{{g.Paced.Record, fmt.Sprintf("%d bytes per second", g.Paced.WBPS)}}
	case g.Escapes != nil:
		return []Evidence{{g.Escapes.Record, fmt.Sprintf("%d bytes per second, for all writes of the group together", g.Escapes.WBPS)}}
	}
	return f.releaseEvidence()
}

// escapesMissing is what was read that shows that the pacer does not.
func (f Facts) escapesMissing() []Evidence {
	if f.Group.ToMake {
		return f.releaseEvidence()
	}
	return []Evidence{{f.Group.Dir, "weir's pacer does not count this group's writes to files of other groups"}}
}

// escapesFix is how weir's pacer comes to hold it.
func (f Facts) escapesFix(p Place) []Fix {
	by := f.foreignBy(p)
	switch {
	case by == nil || by.Holds():
		return nil
	case f.Group.NoPacer != nil:
		return []Fix{{Text: "weir's pacer cannot run here: " + f.Group.NoPacer.Error()}}
	case f.Group.Unseen != nil:
		reason, fixes := notRead(f.Group.Unseen)
		if len(fixes) == 0 {
			return []Fix{{Text: "weir's pacer cannot see such writes here: " + reason}}
		}
		fixes[0].Text += ", so that weir's pacer can see such writes (now " + reason + ")"
		return fixes
	case f.Group.ToMake:
		return []Fix{{Text: "let weir's pacer hold such writes: --hold auto"}}
	}
	return []Fix{{Text: "let weir's pacer hold such writes; it pauses the group's processes only for those", Lines: f.setAgain("")}}
}

// setAgain lists the commands that set the limits on bytes written again, held otherwise.
func (f Facts) setAgain(hold string) (lines []string) {
	for _, p := range f.Places {
		for _, d := range p.Devices {
			if rate := d.Limit.Get(limit.WBPS); rate.IsSet() && !rate.IsUnlimited() {
				lines = append(lines, fmt.Sprintf("weir set %s%s --write %s --on %s", quote(f.Target), hold, rate.Kernel(), quote(d.Node)))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
