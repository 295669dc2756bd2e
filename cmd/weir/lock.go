package main

import (
	"context"
	"fmt"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/target"
)

// lock keeps other weirs from changing a target's limits, and makes sure that a process
// which was named is still in the group that was found for it.
func (a *app) lock(ctx context.Context, t target.Target) (hold.Locked, error) {
	locked, err := a.holder().Lock(ctx, t.Group)
	if err != nil || t.PID == 0 {
		return locked, err
	}
	now, err := a.fs.OfProcess(t.Group.Hierarchy(), t.PID)
	switch {
	case cgroupfs.IsGone(err):
		err = &target.NotFound{Target: t.String(), Why: "it has ended"}
	case err == nil && now != t.Group:
		err = fmt.Errorf("%s has just been moved from cgroup %s to %s; try again", t, t.Group.Path(), now.Path())
	}
	if err != nil {
		locked.Unlock()
	}
	return locked, err
}
