package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/dropin"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/kept"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/unit"
)

// giveGroup makes systemd make a group for a unit that has none of its own, as happens on
// cgroup v1. It checks the limits first, so that a refused set changes nothing.
func (a *app) giveGroup(ctx context.Context, none *unit.NoGroupError, limits []limit.Asked, o setOptions) (target.Target, error) {
	t := target.Target{Kind: "unit", Name: none.Unit, Owner: target.Owner{Kind: "systemd", Name: none.Unit, Unit: none.Unit}}
	if o.persist {
		if err := a.mayPersist(ctx, t, cgroupfs.V1); err != nil {
			return t, err
		}
	}
	silent := *a
	silent.out.Quiet = true
	if _, err := silent.place(ctx, limits, []int{0}); err != nil {
		return t, err
	}
	if o.dryRun {
		return t, fmt.Errorf("%s: weir set would first have systemd make a cgroup for it (BlockIOAccounting=yes); the files to write are not known before that", t)
	}
	h, err := a.io()
	if err != nil {
		return t, err
	}
	if err := a.holder().Account(ctx, h, none.Unit, cmp.Or(none.Slice, systemd.RootSlice)); err != nil {
		return t, err
	}
	a.out.Say("systemd: set BlockIOAccounting=yes of %s, which gives it a cgroup of its own in %s", none.Unit, none.Mount)
	return a.target(ctx, t.String())
}

// mayPersist refuses what nothing keeps over a boot.
func (a *app) mayPersist(ctx context.Context, t target.Target, version cgroupfs.Version) error {
	switch {
	case keepsScope(t, version), keepsEngine(t):
		return nil
	case keepsRecord(t, version):
		if a.root == "/" && os.Geteuid() != 0 {
			return fmt.Errorf("set %s --persist: permission denied (saved limits are in %s; run weir as root)", t, kept.Dir)
		}
		return nil
	case t.Kind == "vm":
		_, err := a.domainConfig(ctx, t)
		return err
	case t.Kind != "unit" && t.Owner.Unit != "" && !strings.HasSuffix(t.Owner.Unit, ".scope"):
		return cli.Usagef("set %s --persist: a %s does not survive a boot, but its unit does; name the unit: unit:%s", t, t.Kind, t.Owner.Unit)
	case t.Kind != "unit":
		return cli.Usagef("set %s --persist: a %s does not survive a boot, and nothing starts it again; leave out --persist, or name a systemd unit", t, t.Kind)
	case strings.HasSuffix(t.Name, ".scope"):
		return cli.Usagef("set %s --persist: a scope ends with its processes, and nothing starts it again; leave out --persist, or name a service or a slice", t)
	case t.Owner.Unit == "":
		return cli.Usagef("set %s --persist: systemd gives the root group no limits; leave out --persist", t)
	case version == cgroupfs.V1 && !strings.HasSuffix(t.Name, ".service"):
		return &cgroupfs.Unsupported{Feature: fmt.Sprintf("set %s --persist", t), Reason: "systemd keeps no limits on cgroup v1, and weir can set them only at the start of a service",
			Remedy: "name a service, or boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1)"}
	}
	if a.root != "/" {
		return nil // a fixture's systemd cannot be asked
	}
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	u, err := conn.Unit(ctx, t.Name)
	if err != nil {
		return err
	}
	if u.Transient {
		return &cgroupfs.Unsupported{Feature: fmt.Sprintf("set %s --persist", t), Reason: "a program such as systemd-run made it, so nothing starts it again after a boot",
			Remedy: "leave out --persist, or give it a unit file"}
	}
	return nil
}

// persist makes a plan one for good: systemd's own settings on v2, of a scope and on v1
// a drop-in.
func (a *app) persist(t target.Target, plan *hold.Plan, limits []limit.Asked, how limit.Hold) error {
	if keepsScope(t, t.Group.Hierarchy().Version) {
		return a.persistScope(t, plan)
	}
	if keepsRecord(t, t.Group.Hierarchy().Version) {
		return a.persistRecord(t, plan, limits, how)
	}
	if t.Kind == "vm" || keepsEngine(t) {
		return nil // libvirt, or the engine, keeps it
	}
	if plan.Unit != "" {
		plan.Persist = true
		return nil
	}
	path := filepath.Join(a.root, dropin.Path(t.Name))
	entries, err := readDropIn(path)
	if err != nil {
		return err
	}
	if entries, err = a.merge(entries, limits, how); err != nil {
		return err
	}
	return a.dropIn(t, plan, path, entries)
}

// dropIn adds the drop-in with these entries to a plan.
func (a *app) dropIn(t target.Target, plan *hold.Plan, path string, entries []limit.Asked) error {
	if entries = thatBind(entries); entries == nil {
		plan.File = &hold.File{Path: path}
		return nil
	}
	program, err := ownPath()
	if err != nil {
		return err
	}
	text, err := dropin.Text(t.Name, program, entries, flagsOf)
	if err != nil {
		return fmt.Errorf("make drop-in: %w", err)
	}
	plan.File = &hold.File{Path: path, Text: text}
	return nil
}

// readDropIn reads weir's drop-in; none has no entries.
func readDropIn(path string) ([]limit.Asked, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read drop-in: %w", err)
	}
	entries, err := dropin.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("read drop-in %s: %w; move it away", path, err)
	}
	return entries, nil
}

// lastingPlace spells a place so that it means the same in any directory. It leaves names that
// are no paths, such as a device's name.
func (a *app) lastingPlace(on string) (string, error) {
	if on == "" || filepath.IsAbs(on) || a.root != "/" {
		return on, nil
	}
	if _, err := os.Stat(on); err != nil {
		return on, nil
	}
	if _, err := os.Stat(filepath.Join("/dev", on)); err == nil {
		return on, nil // a device's name comes first
	}
	path, err := filepath.Abs(on)
	if err != nil {
		return "", fmt.Errorf("find --on %s: %w", on, err)
	}
	return path, nil
}

// unpersist has a plan that lifts limits lift those that are kept, too. only are the
// devices that were named; none: all.
func (a *app) unpersist(ctx context.Context, t target.Target, plan *hold.Plan, only []blkdev.Number) error {
	plan.Lift = true
	if keepsScope(t, t.Group.Hierarchy().Version) {
		return a.unpersistScope(t, plan, only)
	}
	if keepsRecord(t, t.Group.Hierarchy().Version) {
		return a.unpersistRecord(ctx, t, plan, only)
	}
	if keepsEngine(t) {
		return nil // see engineForgets
	}
	if plan.Unit != "" {
		kept, err := systemd.Kept(a.root, plan.Unit)
		plan.Persist = len(kept) > 0
		return err
	}
	if full, err := systemd.FullName(t.Owner.Unit); err != nil || full != t.Owner.Unit {
		return nil // no unit's
	}
	path := filepath.Join(a.root, dropin.Path(t.Owner.Unit))
	entries, err := readDropIn(path)
	if err != nil || entries == nil {
		return err
	}
	if len(only) == 0 {
		plan.File = &hold.File{Path: path}
		return nil
	}
	left := a.withoutDevices(ctx, entries, only)
	unitTarget := target.Target{Kind: "unit", Name: t.Owner.Unit}
	return a.dropIn(unitTarget, plan, path, left)
}

// withoutDevices removes devices from what a drop-in sets: it drops entries that are only on
// these devices, and overrides those that are on others too, or on unknown devices, by an entry
// at the end.
func (a *app) withoutDevices(ctx context.Context, entries []limit.Asked, gone []blkdev.Number) []limit.Asked {
	var left []limit.Asked
	overrule := map[blkdev.Number]bool{}
	for _, e := range entries {
		var on []blkdev.Number
		var err error
		if e.On != "" {
			on, err = a.devicesNamed(ctx, []string{e.On})
		}
		unknown := e.On == "" || err != nil
		others := slices.ContainsFunc(on, func(n blkdev.Number) bool { return !slices.Contains(gone, n) })
		if !unknown && !others {
			continue
		}
		left = append(left, e)
		for _, dev := range gone {
			overrule[dev] = overrule[dev] || unknown || slices.Contains(on, dev)
		}
	}
	for _, dev := range gone {
		if overrule[dev] {
			left = dropin.Merge(left, limit.Asked{On: dev.String(), Limit: limit.None})
		}
	}
	return left
}

// sayHowLong says how long a limit lasts, where that may be unexpected.
func (a *app) sayHowLong(t target.Target, plan hold.Plan, persist bool) {
	switch {
	case t.Kind == "vm" && persist:
		a.out.Say("libvirt keeps the limit for the next start of %s; weir clear removes it", t)
	case keepsEngine(t) && persist:
		a.out.Say("%s keeps the limit for each start of %s; weir clear removes it", t.Record.By, t)
	case plan.File != nil && plan.File.Text != "" && plan.File.Own:
		a.out.Say("%s keeps the limit: after a restart of %s, weir restore sets it again; to have systemd run that at boot: weir restore --at-boot", plan.File.Path, t)
	case plan.File != nil && plan.File.Text != "" && plan.Unit != "":
		a.out.Say("%s has systemd set the limit at each start of %s, also after a boot; weir clear removes it", plan.File.Path, t)
	case t.Record != nil:
		a.out.Say("warning: %s keeps limits of its own and does not know this one: a restart of %s loses it%s", t.Record.By, t, persistHint(t))
	case t.Kind == "vm" || t.Kind == "containerd" || t.Kind == "pod":
		a.out.Say("warning: %s does not know this limit: %s loses it when it restarts%s", t.Owner.Kind, t, persistHint(t))
	case plan.File != nil && plan.File.Text != "":
		a.out.Say("systemd keeps no limits on cgroup v1, so %s runs weir at each start of %s; weir clear removes it", plan.File.Path, t.Owner.Unit)
	case plan.Persist:
		a.out.Say("systemd keeps the limit for %s, also after a boot; weir clear removes it", plan.Unit)
	case plan.Unit != "":
		kept, err := systemd.Kept(a.root, plan.Unit)
		if err != nil {
			return
		}
		for _, d := range kept {
			if slices.ContainsFunc(plan.Changes, func(c hold.Change) bool { return c.Limit.Get(d.Key).IsSet() }) {
				a.out.Say("warning: the next daemon-reload or boot brings back the limit in %s; add --persist to change it", d.Path)
			}
		}
	case t.Owner.Unit != "":
		a.out.Say("warning: systemd owns %s and keeps no limits on cgroup v1: a restart of the unit loses it%s", t.Owner.Unit, persistHint(t))
	}
}

func persistHint(t target.Target) string {
	if keepsScope(t, t.Group.Hierarchy().Version) || keepsEngine(t) {
		return "; add --persist to keep it"
	}
	if keepsRecord(t, t.Group.Hierarchy().Version) {
		return "; add --persist to have weir restore set it again"
	}
	if t.Kind == "unit" && strings.HasSuffix(t.Name, ".service") {
		return "; add --persist to set it at each start"
	}
	return ""
}
