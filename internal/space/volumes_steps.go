package space

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
)

// Each method here lists what the method of its name does now, with that of LimitTargets where a
// volume is for targets, and that of Boot.Refresh where the set of volumes changes. None changes
// anything.

// CreateSteps lists what Create would do.
func (v Volumes) CreateSteps(ctx context.Context, spec volume.Spec) ([]hold.Step, error) {
	if err := v.checkTargets(ctx, spec.For); err != nil {
		return nil, err
	}
	steps, err := v.store.CreateSteps(spec)
	if err != nil {
		return nil, err
	}
	mount, err := v.store.PlaceOf(spec.What)
	steps = append(steps, laterSteps(volume.Volume{Mount: mount, Limit: spec.Limit, For: spec.For})...)
	return append(steps, bootSteps()...), err
}

// AdoptSteps lists what Adopt would do.
func (v Volumes) AdoptSteps(ctx context.Context, dir string, l limit.Limit, targets []string) ([]hold.Step, error) {
	if err := v.checkTargets(ctx, targets); err != nil {
		return nil, err
	}
	steps, err := v.store.AdoptSteps(ctx, dir, l)
	if err != nil {
		return nil, err
	}
	mount, err := v.store.PlaceOf(dir)
	if err != nil {
		return nil, err
	}
	more, err := v.targetSteps(ctx, volume.Volume{Mount: mount, For: targets}, l)
	return slices.Concat(steps, more, bootSteps()), err
}

// SetSteps lists what Set would do.
func (v Volumes) SetSteps(ctx context.Context, what string, l limit.Limit, targets []string) ([]hold.Step, error) {
	was, err := v.store.Find(what)
	if err != nil {
		return nil, err
	}
	if err := v.checkTargets(ctx, targets); err != nil {
		return nil, err
	}
	steps, err := v.store.SetSteps(was.Name, l, targets)
	if err != nil {
		return nil, err
	}
	if at, err := v.store.Where(was); err != nil || !at.Up {
		return steps, err
	}
	limited := was.Limit.Overlay(l)
	was.For = slices.Clone(was.For)
	for _, t := range targets {
		if !slices.Contains(was.For, t) {
			was.For = append(was.For, t)
		}
	}
	more, err := v.targetSteps(ctx, was, limited)
	return append(steps, more...), err
}

// UpSteps lists what Up would do.
func (v Volumes) UpSteps(ctx context.Context, name string) ([]hold.Step, error) {
	steps, err := v.store.UpSteps(name)
	if err != nil {
		return nil, err
	}
	one, err := v.store.Find(name)
	if err != nil {
		return nil, err
	}
	if at, err := v.store.Where(one); err != nil || !at.Up {
		return append(steps, laterSteps(one)...), err
	}
	more, err := v.targetSteps(ctx, one, one.Limit)
	return append(steps, more...), err
}

// ResizeSteps lists what Resize would do.
func (v Volumes) ResizeSteps(_ context.Context, what string, size uint64) ([]hold.Step, error) {
	return v.store.ResizeSteps(what, size)
}

// DownSteps lists what Down would do.
func (v Volumes) DownSteps(_ context.Context, what string) ([]hold.Step, error) {
	return v.store.DownSteps(what)
}

// DeleteSteps lists what Delete would do.
func (v Volumes) DeleteSteps(_ context.Context, what string) ([]hold.Step, error) {
	return withBoot(v.store.DeleteSteps(what))
}

// ForgetSteps lists what Forget would do.
func (v Volumes) ForgetSteps(_ context.Context, what string) ([]hold.Step, error) {
	return withBoot(v.store.ForgetSteps(what))
}

func withBoot(steps []hold.Step, err error) ([]hold.Step, error) {
	if err != nil {
		return nil, err
	}
	return append(steps, bootSteps()...), nil
}

// bootSteps rewrite the units that bring volumes up at boot, if there are any. They wait for the
// disks of all volumes.
func bootSteps() (steps []hold.Step) {
	if !installed() {
		return nil
	}
	for _, unit := range []string{VolumesUnit, LimitsUnit} {
		steps = append(steps, hold.Step{Call: "rewrite " + keep.UnitDir + unit})
	}
	return append(steps, hold.Step{Call: "have systemd read its units again"})
}

// targetSteps set the limit of a mounted volume on the targets that it is for.
func (v Volumes) targetSteps(ctx context.Context, of volume.Volume, l limit.Limit) (steps []hold.Step, err error) {
	if l.IsZero() {
		return nil, nil
	}
	m := limiting.Manager{Host: v.Host}
	for _, spec := range of.For {
		change, err := m.PrepareSet(ctx, limiting.Request{Target: spec, Asked: []limit.Asked{{On: of.Mount, Limit: l}}})
		if err != nil {
			return steps, err
		}
		preview, err := change.Steps(ctx)
		if err != nil {
			return steps, err
		}
		steps = append(steps, preview.Steps...)
	}
	return steps, nil
}

// laterSteps say which limits are set once a volume is mounted: its device has no number yet.
func laterSteps(of volume.Volume) (steps []hold.Step) {
	if of.Limit.IsZero() {
		return nil
	}
	for _, spec := range of.For {
		asked := limit.Asked{On: of.Mount, Limit: of.Limit}
		steps = append(steps, hold.Step{Call: fmt.Sprintf("do what this does: weir set %s %s", cmdline.Quote(spec), cmdline.Flags(asked))})
	}
	return steps
}
