package limiting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/targets"
)

// planFor makes systemd write for its units on v2. On v1 systemd has no setting for operations
// per second, so weir writes the files, and systemd has to keep the group. (It keeps the groups
// of containers and virtual machines anyway, because they are delegated.) systemd has to leave
// groups alone that others have made beside its units.
func (m Manager) planFor(t targets.Target, list []hold.Change) hold.Plan {
	plan := hold.Plan{Group: t.Group, Changes: list}
	slice := cmp.Or(systemd.SliceOf(t.Group.Path()), systemd.RootSlice)
	switch {
	case t.Group.Hierarchy().Version == cgroupfs.V2:
		plan.Unit = t.Owner.Unit
		if m.mayLoseIO(t) {
			plan.Anchor = slice
		}
	case t.Owner.Kind == "systemd":
		plan.Account, plan.Anchor = t.Owner.Unit, slice
	case m.mayStray(t.Group):
		plan.Anchor = systemd.SystemSlice
	}
	return plan
}

// goPast has weir itself write a unit's rules on devices that systemd goes past: it would limit the disk below,
// with every other volume on it, and over what the unit has there.
func (m Manager) goPast(ctx context.Context, plan *hold.Plan) {
	plan.Past = nil
	if plan.Unit == "" {
		return
	}
	for _, c := range plan.Changes {
		if systemd.GoesPast(ctx, m.Host.Root, c.Device) {
			plan.Past = append(plan.Past, c.Device)
		}
	}
}

// mayStray reports whether systemd can move processes out of a group: on cgroup v1, out of a
// group that it did not make.
func (m Manager) mayStray(g cgroupfs.Group) bool {
	return g.Hierarchy().Version == cgroupfs.V1 && m.Host.SystemdRuns() && !systemd.IsBelowUnit(g.Path())
}

// mayLoseIO reports whether systemd can disable the io controller of a group: on cgroup v2, of a
// group that others have made beside its units.
func (m Manager) mayLoseIO(t targets.Target) bool {
	return t.Group.Hierarchy().Version == cgroupfs.V2 && t.Owner.Unit == "" && m.Host.SystemdRuns() && systemd.IsBesideUnits(t.Group.Path())
}

// enforce puts a plan with limits into force. If systemd cannot be kept from ending them, that is
// a warning: they are in force until it does.
func (m Manager) enforce(ctx context.Context, locked hold.Locked, t targets.Target, plan hold.Plan) ([]note.Note, error) {
	err := locked.Apply(ctx, plan)
	var loose *hold.AnchorError
	if errors.As(err, &loose) && plan.Account == "" && ctx.Err() == nil {
		notes := []note.Note{note.Warningf("no-anchor", "%v", loose)}
		if loose.Version == cgroupfs.V1 {
			notes = append(notes, moved("their slice", t.Group))
		} else {
			notes = append(notes, note.Warningf("may-lose-io", "systemd did not make cgroup %s. When the last unit in %s that needs the io controller stops, systemd disables it there, and the limit is lost", t.Group.Path(), loose.Slice))
		}
		plan.Anchor = ""
		return notes, locked.Apply(ctx, plan)
	}
	if err != nil {
		return nil, err
	}
	return m.strays(t), nil
}

// strays warns of a process that is in another slice than the anchor's.
func (m Manager) strays(t targets.Target) []note.Note {
	named := m.Host.FS.With("name=systemd")
	if !m.mayStray(t.Group) || named == nil {
		return nil
	}
	pids, err := t.Group.Processes()
	if err != nil {
		return nil
	}
	for _, pid := range pids {
		g, err := m.Host.FS.OfProcess(named, pid)
		if err != nil {
			continue
		}
		if slice := systemd.SliceOf(g.Path()); slice != "" && slice != systemd.SystemSlice {
			return []note.Note{moved(slice, t.Group)}
		}
	}
	return nil
}

// moved warns that systemd moves processes out of a group.
func moved(slice string, g cgroupfs.Group) note.Note {
	return note.Warningf("may-stray", "systemd did not make cgroup %s. When the first unit in %s asks for disk I/O accounting, and when the last such unit stops, systemd moves processes out of the group and so out of the limit", g.Path(), slice)
}

// leaderOf returns the process of a thread; a process, or what has ended, is its own.
func leaderOf(pid int) int {
	text, err := peek.File(fmt.Sprintf("/proc/%d/status", pid), peek.Short)
	if err != nil {
		return pid
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Tgid:"); ok {
			if leader, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				return leader
			}
		}
	}
	return pid
}
