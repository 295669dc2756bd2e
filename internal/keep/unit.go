package keep

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
)

// unitKeeper is systemd, which keeps limits of its units on cgroup v2.
type unitKeeper struct{ base }

func (unitKeeper) By() string { return "systemd" }

func (k unitKeeper) Paces() Paces {
	if k.t.Kind == "unit" {
		return PaceFollows // as long as it runs it holds the unit's next group
	}
	return PaceLost
}

func (k unitKeeper) May(ctx context.Context) error {
	if err := k.mayUnit(); err != nil {
		return err
	}
	return k.mayTransient(ctx)
}

func (k unitKeeper) Keep(_ context.Context, w Wanted, plan *hold.Plan) (Edit, error) {
	if err := k.mayPast(w, *plan); err != nil {
		return Edit{}, err
	}
	plan.Persist = true
	return Edit{}, nil
}

func (k unitKeeper) Forget(_ context.Context, only []blkdev.Number, plan *hold.Plan) (edit Edit, err error) {
	kept, err := systemd.Kept(k.h.Root, k.t.Owner.Unit)
	plan.Persist = len(kept) > 0
	if len(only) == 0 {
		edit.After = []Action{forgetUnit{k.h, plan}}
	}
	return edit, err
}

func (k unitKeeper) Lasts(plan hold.Plan, kept bool) []note.Note {
	if kept && plan.Persist {
		return []note.Note{note.Infof("kept", "systemd keeps the limit for %s, also after a boot", plan.Unit).With(fault.Remedy{Do: fault.Clear})}
	}
	return k.lost(plan)
}

// mayUnit refuses what no unit survives a boot for.
func (b base) mayUnit() error {
	t := b.t
	refuse := func(class fault.Class, why string, do fault.Do) error {
		return &Refused{Target: t.String(), Kind: class, Why: why, Remedy: fault.Remedy{Do: do}}
	}
	switch {
	case t.Kind != "unit" && t.Owner.Unit != "" && !strings.HasSuffix(t.Owner.Unit, ".scope"):
		return refuse(fault.WrongUse, "a "+t.Kind+" does not survive a boot, but its unit does; name the unit: unit:"+t.Owner.Unit, "")
	case t.Kind != "unit":
		return refuse(fault.WrongUse, "a "+t.Kind+" does not survive a boot, and nothing starts it again", fault.NameUnit)
	case strings.HasSuffix(t.Name, ".scope"):
		return refuse(fault.WrongUse, "a scope ends with its processes, and nothing starts it again", fault.NameService)
	case t.Owner.Unit == "":
		return refuse(fault.WrongUse, "systemd gives the root group no limits", fault.DoNotKeep)
	case b.version == cgroupfs.V1 && !strings.HasSuffix(t.Name, ".service"):
		return refuse(fault.NotPossible, "systemd keeps no limits on cgroup v1, and weir can set them only at the start of a service; "+
			"name a service, or boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)", "")
	}
	return nil
}

// mayPast refuses limits of devices that systemd goes past: at each start it would set them on the disk below.
func (b base) mayPast(w Wanted, plan hold.Plan) error {
	for _, p := range w.Places {
		if p.Limit.Bounds() && slices.Contains(plan.Past, p.Device.Number) {
			return &Refused{Target: b.t.String(), Kind: fault.NotPossible,
				Why:    "systemd cannot limit " + p.Device.Node + " itself, only the device below it, and would set the limit there at each start",
				Remedy: fault.Remedy{Do: fault.KeepByPlan}}
		}
	}
	return nil
}

// mayTransient refuses units that were made by a program: nothing makes them again.
func (b base) mayTransient(ctx context.Context) error {
	if !b.h.IsOwn() {
		return nil // a copy's systemd cannot be asked
	}
	conn, err := b.h.Systemd(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	u, err := conn.Unit(ctx, b.t.Name)
	if err != nil {
		return err
	}
	if u.Transient {
		return &Refused{Target: b.t.String(), Kind: fault.NotPossible,
			Why: "a program such as systemd-run made it, so nothing starts it again after a boot", Remedy: fault.Remedy{Do: fault.GiveUnitFile}}
	}
	return nil
}

// forgetUnit makes systemd store no rate of a unit over boots, not even a rate that is not in force
// now, because it was removed until the next boot or its device is gone.
type forgetUnit struct {
	h    *host.Host
	plan *hold.Plan
}

// Steps are the files that Do removes, except those of rates that the plan removes.
func (a forgetUnit) Steps(context.Context) (steps []hold.Step, err error) {
	if a.plan.Unit == "" || !a.plan.Persist {
		return nil, nil
	}
	kept, err := systemd.Kept(a.h.Root, a.plan.Unit)
	if err != nil {
		return nil, nil // Forget has just read them
	}
	for _, d := range kept {
		if !slices.ContainsFunc(a.plan.Changes, func(c hold.Change) bool { return c.Limit.Get(d.Key) == limit.Unlimited }) {
			steps = append(steps, hold.Step{File: d.Path})
		}
	}
	return steps, nil
}

func (a forgetUnit) Do(ctx context.Context) (done Done, err error) {
	if a.plan.Unit == "" || !a.plan.Persist {
		return done, nil
	}
	conn, err := a.h.Systemd(ctx)
	if err != nil {
		return done, err
	}
	defer conn.Close()
	keys, err := conn.Kept(a.plan.Unit)
	if err != nil || len(keys) == 0 {
		return done, err
	}
	if len(a.plan.Changes) == 0 { // else it is said of each device
		done.Note = note.Infof("forgotten", "systemd no longer keeps a limit for it")
	}
	return done, conn.Forget(ctx, a.plan.Unit, keys)
}
