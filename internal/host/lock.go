package host

import (
	"context"
	"fmt"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// Lock keeps other weirs from changing a target's limits. It makes sure that a process which was
// named is still in the group that was found for it: if it has ended, the error is a
// *targets.NotFound.
func (h *Host) Lock(ctx context.Context, t targets.Target) (hold.Locked, error) {
	locked, err := h.Holder().Lock(ctx, t.Group)
	if err != nil || t.PID == 0 {
		return locked, err
	}
	now, err := h.FS.OfProcess(t.Group.Hierarchy(), t.PID)
	switch {
	case cgroupfs.IsGone(err):
		err = &targets.NotFound{Target: t.String(), Why: "it has ended"}
	case err == nil && now != t.Group:
		err = fmt.Errorf("%s has just been moved from cgroup %s to %s; try again", t, t.Group.Path(), now.Path())
	}
	if err != nil {
		locked.Unlock()
	}
	return locked, err
}
