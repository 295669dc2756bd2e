package launch

import (
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Pace makes weir's pacer hold a room before the command is in it. The pacer releases it when
// the room's group is gone. note says what to know about the accuracy.
func (h Host) Pace(room *Room) (note string, err error) {
	cells, err := pacer.CellsFor(h.FS, room.IO, 0)
	if err != nil {
		return "", err
	}
	rules, err := room.IO.Rules()
	if err != nil {
		return "", err
	}
	j, some := pacer.JobFor(room.IO, rules)
	if !some {
		return "", nil
	}
	j.Cell = pacer.PlaceOf(cells[0], pacer.Freezer)
	if note, err = (pacer.Client{State: h.State}).Add(j); err != nil {
		return "", err
	}
	room.Join(cells[0])
	return note, nil
}

// lent asks the pacer what it has let past the rules of a room; nil: it does not hold the room.
func (h Host) lent(room *Room) func() map[blkdev.Number]uint64 {
	if room.cell == nil {
		return nil
	}
	return func() map[blkdev.Number]uint64 {
		seen, err := (pacer.Client{State: h.State}).Seen(pacer.PlaceOf(room.IO, "blkio"))
		if err != nil {
			return nil // a pacer that has just begun has lent nothing
		}
		return seen.Lent
	}
}

// Unpace has the pacer let a room go.
func (h Host) Unpace(room *Room) error {
	return (pacer.Client{State: h.State, FS: h.FS}).Remove(pacer.PlaceOf(room.IO, "blkio"))
}

// PaceEscapes makes weir's pacer hold what escapes a room's limits on cgroup v2. It pauses no
// process before something escapes.
func (h Host) PaceEscapes(room *Room) (some bool, err error) {
	rules, err := room.IO.Rules()
	if err != nil {
		return false, err
	}
	j, some := pacer.JobFor(room.IO, rules)
	if !some {
		return false, nil
	}
	j.Count = pacer.CountEscaped
	if _, err = (pacer.Client{State: h.State}).Add(j); err != nil {
		return false, err
	}
	cell, err := room.IO.Child(cgroupfs.CellName(room.IO))
	if err != nil {
		return false, err
	}
	room.pauses = &cell // once something has escaped
	return true, nil
}

// PaceSteps is what Pace does for the group of a plan, at a rate.
func (h Host) PaceSteps(g cgroupfs.Group, wbps uint64, devices []blkdev.Number) ([]hold.Step, error) {
	cells, err := pacer.CellsFor(h.FS, g, 0)
	if err != nil {
		return nil, err
	}
	return hold.PaceSteps(g, cells, wbps, devices), nil
}
