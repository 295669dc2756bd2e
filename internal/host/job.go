package host

import (
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Jobs returns what the pacer was asked for all groups, for who asks about many.
func (h *Host) Jobs() (map[pacer.Place][]pacer.Job, error) {
	if !h.IsOwn() {
		return map[pacer.Place][]pacer.Job{}, nil
	}
	jobs, err := pacer.Holding(h.State)
	return pacer.ByPlace(jobs), err
}

// JobOf returns what the pacer was asked for a group; nil: nothing, as for all groups of a copy
// of a machine.
func (h *Host) JobOf(g cgroupfs.Group) (*pacer.Job, error) {
	if !h.IsOwn() {
		return nil, nil
	}
	jobs, err := pacer.HoldingOf(h.State, pacer.PlaceOf(g, "blkio"))
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	return &jobs[0], nil
}
