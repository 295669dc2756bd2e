package host

import (
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

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
