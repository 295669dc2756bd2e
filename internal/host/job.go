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
	jobs, err := pacer.Holding(h.State)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		if j.Limited == pacer.PlaceOf(g, "blkio") {
			return &j, nil
		}
	}
	return nil, nil
}
