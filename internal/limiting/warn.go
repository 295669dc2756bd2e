package limiting

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// Drain warns of limits on writes under which a group's memory fills with dirty data. It is for
// before any writer is in the group, or the limit in force. memory is how much the group may use,
// in bytes; 0: there is no bound.
func Drain(h *host.Host, g cgroupfs.Group, memory uint64, decided place.Decision) (notes []note.Note) {
	if memory == 0 {
		return nil
	}
	for _, p := range decided.Places {
		if !p.LimitsWrites() || p.Buffered.Mechanism != place.Writeback {
			continue
		}
		d := why.Device{Device: p.Device, Limit: p.Limit}
		if bdi, there, err := h.Kernel().BDI(p.Device.Number); err == nil && there {
			d.BDI = &bdi
		}
		if took, slow := why.SlowDrain(memory, d); slow {
			notes = append(notes, note.Warningf("slow-drain", "the group may use %s of memory, and dirty data of that size takes %s to reach %s at this limit: a buffered writer will stall, hang or be OOM-killed",
				limit.FormatMeasured(float64(memory)), why.Seconds(took), p.Device.Node).With(fault.Remedy{Do: fault.AskWhy, Target: "cgroup:" + g.Path()}))
		}
	}
	return notes
}

// MemoryOf is the smallest bound on a group's memory, its own or one above, in bytes; 0 if there
// is none, or none can be read.
func MemoryOf(g cgroupfs.Group) uint64 {
	least := uint64(0)
	for ; !g.IsRoot(); g = g.Parent() {
		m, there, err := g.Memory()
		if err != nil || !there {
			continue
		}
		for _, n := range []uint64{m.Max, m.High} {
			if n != 0 && (least == 0 || n < least) {
				least = n
			}
		}
	}
	return least
}

// foreign warns of files that a container is writing to and whose writeback is charged to another
// group, as those in a volume are that an earlier container has made: the kernel does not hold
// that. Other targets are not asked about: it takes a part of a second, and they seldom come to
// other's files.
func (m Manager) foreign(ctx context.Context, t targets.Target, limits []limit.Asked, decided place.Decision) []note.Note {
	writes := slices.ContainsFunc(decided.Places, func(p place.Expected) bool { return p.LimitsWrites() })
	if len(t.Firsts) == 0 || t.Group.Hierarchy().Version != cgroupfs.V2 || !writes {
		return nil
	}
	sources, err := m.Host.WhySources()
	if err != nil {
		return []note.Note{note.Noticef("foreign-unknown", "weir cannot see which files %s writes to: %v", t, err)}
	}
	q := why.Question{Target: &t, Hold: limit.HoldAuto} // with Firsts its mounts tell its disks
	for _, l := range limits {
		q.Places = append(q.Places, place.Spot{Asked: l})
	}
	facts, err := why.Gather(ctx, sources, q)
	for _, p := range facts.Places {
		if err == nil {
			err = p.OwnersErr
		}
	}
	return foreignNotes(t, facts.Foreign(), decided.Escapes != nil, err)
}

// foreignNotes tells of files of other groups; err is why they are not known.
func foreignNotes(t targets.Target, files []inode.File, paced bool, err error) []note.Note {
	switch {
	case len(files) == 0 && err != nil:
		return []note.Note{note.Noticef("foreign-unknown", "weir cannot tell whether %s writes to other groups' files: %v", t, err)}
	case len(files) == 0:
		return nil
	}
	first, more := files[0], ""
	switch n := len(files) - 1; {
	case n == 1:
		more = " and 1 other file"
	case n > 1:
		more = fmt.Sprintf(" and %d other files", n)
	}
	mend := fault.Remedy{Do: fault.Mend, Target: t.String()}
	if paced {
		return []note.Note{note.Noticef("foreign", "the kernel charges the writeback of %s%s to %s: weir's pacer is expected to hold that, and pauses %s for it",
			why.Name(first), more, why.Whose(first.Owner), t).With(mend)}
	}
	return []note.Note{note.Warningf("foreign", "buffered writes to %s%s are NOT held: the kernel charges their writeback to %s", why.Name(first), more, why.Whose(first.Owner)).With(mend)}
}
