package main

import (
	"context"
	"errors"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
)

// mayStray reports whether systemd can move processes out of a group: on cgroup v1, out of a
// group that it did not make.
func (a *app) mayStray(g cgroupfs.Group) bool {
	return g.Hierarchy().Version == cgroupfs.V1 && systemd.Running(a.root) && !systemd.IsBelowUnit(g.Path())
}

// mayLoseIO reports whether systemd can disable the io controller of a group: on cgroup v2, of
// a group that others have made beside its units.
func (a *app) mayLoseIO(t target.Target) bool {
	return t.Group.Hierarchy().Version == cgroupfs.V2 && t.Owner.Unit == "" && systemd.Running(a.root) && systemd.IsBesideUnits(t.Group.Path())
}

// enforce puts a plan with limits into force. If systemd cannot be kept from ending them, that
// is a warning: they are in force until it does.
func (a *app) enforce(ctx context.Context, locked hold.Locked, t target.Target, plan hold.Plan) error {
	err := locked.Apply(ctx, plan)
	var loose *hold.AnchorError
	if errors.As(err, &loose) && plan.Account == "" && ctx.Err() == nil {
		a.out.Say("warning: %v", loose)
		if loose.Version == cgroupfs.V1 {
			a.sayMoved("their slice", t.Group)
		} else {
			a.out.Say("warning: systemd did not make cgroup %s; it disables the io controller there, and so removes the limit, when the last unit in %s that needs the controller stops", t.Group.Path(), loose.Slice)
		}
		plan.Anchor = ""
		return locked.Apply(ctx, plan)
	}
	if err != nil {
		return err
	}
	a.sayStrays(t)
	return nil
}

// sayStrays warns of a process that is in another slice than the anchor's.
func (a *app) sayStrays(t target.Target) {
	named := a.fs.With("name=systemd")
	if !a.mayStray(t.Group) || named == nil {
		return
	}
	pids, err := t.Group.Processes()
	if err != nil {
		return
	}
	for _, pid := range pids {
		g, err := a.fs.OfProcess(named, pid)
		if err != nil {
			continue
		}
		if slice := systemd.SliceOf(g.Path()); slice != "" && slice != systemd.SystemSlice {
			a.sayMoved(slice, t.Group)
			return
		}
	}
}

func (a *app) sayMoved(slice string, g cgroupfs.Group) {
	a.out.Say("warning: systemd did not make cgroup %s; it moves processes out of it, and so out of the limit, when the first unit in %s asks for disk I/O accounting and when the last such unit stops", g.Path(), slice)
}
