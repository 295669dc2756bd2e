package place

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
)

// mechanismWords name a mechanism to people.
func mechanismWords() map[Mechanism]string {
	return map[Mechanism]string{
		Throttle:  "the kernel's throttle",
		Writeback: "writeback",
		Volume:    "the volume's limit, which all its writers share",
		RootRule:  "the root group's rule, at the disk only",
		Pacer:     "weir's pacer",
	}
}

// paths lists the paths of one line, in order.
func (e Expected) paths() []told {
	var all []told
	if e.LimitsReads() {
		all = append(all, told{"reads", e.Read})
	}
	if e.LimitsWrites() {
		all = append(all, told{"direct writes", e.Direct}, told{"synchronous writes", e.Sync}, told{"buffered writes", e.Buffered})
	}
	return all
}

type told struct {
	name string
	by   By
}

// Lines says for people what is expected to hold, by which mechanism, and what is not.
func (e Expected) Lines() []string {
	held, not, notes := e.Words()
	var lines []string
	if len(held) > 0 {
		lines = append(lines, "expected to hold: "+strings.Join(held, "; "))
	}
	if len(not) > 0 {
		lines = append(lines, "expected NOT to hold: "+strings.Join(not, "; "))
	}
	for _, n := range notes {
		lines = append(lines, "note: "+n)
	}
	return lines
}

// Words are what Lines makes lines of: which paths are held and by what, which are not and why, and
// what is to be known of those that are.
func (e Expected) Words() (held, not, notes []string) {
	paths := e.paths()
	for _, m := range []Mechanism{Throttle, Writeback, Volume, Pacer} {
		if names := namesOf(paths, func(b By) bool { return b.Holds() && b.Mechanism == m }); names != "" {
			held = append(held, names+" by "+mechanismWords()[m])
		}
	}
	reasons := map[string]bool{}
	for _, p := range paths {
		if p.by.Holds() || reasons[p.by.Why] {
			continue
		}
		reasons[p.by.Why] = true
		names := namesOf(paths, func(b By) bool { return !b.Holds() && b.Why == p.by.Why })
		not = append(not, names+" ("+p.by.Why+")")
	}
	for _, p := range paths {
		if p.by.Holds() && p.by.Why != "" {
			notes = append(notes, p.by.Why)
		}
	}
	return held, not, notes
}

// namesOf joins the paths for which a condition is true: "reads, direct and synchronous
// writes".
func namesOf(paths []told, holds func(By) bool) string {
	var names []string
	writes := ""
	for _, p := range paths {
		if !holds(p.by) {
			continue
		}
		name, isWrite := strings.CutSuffix(p.name, " writes")
		if isWrite {
			writes = " writes"
		}
		names = append(names, name)
	}
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0] + writes
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1] + writes
	}
}

// Notes are what else the user should know: about files of other groups, the cost of the pacer,
// and processes that a limit does not reach.
func (d Decision) Notes() []note.Note {
	var notes []note.Note
	switch {
	case d.Escapes != nil:
		notes = append(notes, note.Infof("foreign-paced", "expected to hold: writes to other groups' files by weir's pacer, which pauses the group only for those"))
	case d.Group.Version == cgroupfs.V2 && d.Paced == nil && d.Binds():
		notes = append(notes, note.Infof("foreign-not-held", "expected NOT to hold: writes to other groups' files, which the kernel charges to those groups%s", d.blind()))
		if d.Group.Late {
			notes = append(notes, note.Infof("late-not-held", "expected NOT to hold at first: buffered writes to files that the group has written before; the kernel charges them to it once it writes to another file of the disk"))
		}
	}
	for _, e := range d.Places {
		if e.Foreign != nil && e.Foreign.Holds() && e.Foreign.Why != "" {
			notes = append(notes, note.Noticef("foreign-operations", "the limit on operations does not apply to writes to other groups' files: %s", e.Foreign.Why))
			break
		}
	}
	if d.Paced != nil {
		notes = append(notes, note.Noticef("paced", "weir's pacer pauses all processes of the group for moments; they do not compute meanwhile"))
		if len(d.Paced.Devices) > 1 {
			notes = append(notes, note.Noticef("paced-together", "the pacer cannot tell disks apart: the lowest limit applies to the writes to all disks together"))
		}
	}
	if g := d.Group; g.Own > 0 && len(g.Below) > 0 {
		notes = append(notes, note.Warningf("child-groups", "on cgroup v1 the limit does not reach child groups with processes: %s; set it for each of those too", g.Children()))
	}
	return notes
}

// blind says why weir's pacer does not hold what escapes, unless the user turned the pacer off.
func (d Decision) blind() string {
	if d.Hold != limit.HoldAuto || d.Group.NoPacer != nil || d.Group.Unseen == nil {
		return ""
	}
	var missing *fault.Unsupported // weird is, and not BPF
	if errors.As(d.Group.Unseen, &missing) {
		return fmt.Sprintf(" (weir's pacer cannot see them: %v)", missing)
	}
	return " (weir's pacer needs BPF to see them, which is not available here)"
}
