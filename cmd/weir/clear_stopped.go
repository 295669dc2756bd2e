package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/dropin"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/kept"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
)

// clearStopped removes the limits saved for a unit, a container or a virtual machine that is
// not running, and so has no group. For any other target it returns the error that it was
// called with.
func (a *app) clearStopped(ctx context.Context, spec string, found error, dryRun bool) error {
	var stopped *target.StoppedError
	if errors.As(found, &stopped) {
		return a.clearContainer(ctx, spec, stopped, dryRun)
	}
	if done, err := a.clearGone(ctx, spec, found, dryRun); done || err != nil {
		return err
	}
	var notFound *target.NotFound
	if name, is := strings.CutPrefix(spec, "vm:"); is && errors.As(found, &notFound) {
		steps, done := a.clearDomain(ctx, name, dryRun)
		switch {
		case dryRun && len(steps) > 0:
			return a.dryRun("clear", steps)
		case !done:
			return found
		}
		return a.saidCleared(spec, target.Owner{Kind: "libvirt", Name: name})
	}
	if name, isUnit := strings.CutPrefix(spec, "unit:"); errors.As(found, &notFound) && isUnit && a.root == "/" && systemd.Running(a.root) {
		return a.clearUnit(ctx, name, found, dryRun)
	}
	return found
}

// clearUnit removes the limits saved for a unit that is not running.
func (a *app) clearUnit(ctx context.Context, name string, found error, dryRun bool) error {
	full, err := systemd.FullName(name)
	if err != nil {
		return found
	}
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return found
	}
	defer conn.Close()
	u, err := conn.Unit(ctx, full)
	if err != nil || u.Load != "loaded" || u.Cgroup != "" {
		return found
	}
	h, err := a.io()
	if err != nil {
		return err
	}
	if err := h.Writable(); err != nil {
		return err
	}
	settings, err := systemd.DropIns(a.root, u.Name)
	if err != nil {
		return err
	}
	path := filepath.Join(a.root, dropin.Path(u.Name))
	entries, err := readDropIn(path)
	if err != nil {
		return err
	}
	if len(settings) == 0 && entries == nil {
		return found
	}
	if dryRun {
		var steps []hold.Step
		for _, d := range settings {
			steps = append(steps, hold.Step{File: d.Path})
		}
		if entries != nil {
			steps = append(steps, hold.Step{File: path})
		}
		return a.dryRun("clear", steps)
	}
	if len(settings) > 0 {
		if err := conn.Lift(ctx, u.Name); err != nil {
			return err
		}
	}
	if entries != nil {
		if err := a.holder().RemoveFile(ctx, path); err != nil {
			return err
		}
	}
	if err := a.pacer().Forget(u.Name); err != nil {
		return err
	}
	return a.saidCleared("unit:"+u.Name, target.Owner{Kind: "systemd", Name: u.Name})
}

// clearContainer removes weir's record of a container that does not run, and the drop-in
// of a scope that systemd will make for it, and has its engine keep no limits.
func (a *app) clearContainer(ctx context.Context, spec string, stopped *target.StoppedError, dryRun bool) error {
	h, err := a.io()
	if err != nil {
		return err
	}
	if err := h.Writable(); err != nil && !dryRun {
		return err
	}
	unlock, err := a.lockKept(ctx, false)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := kept.Read(a.root, stopped.Lasting)
	if err != nil {
		return err
	}
	var entries []limit.Asked
	path := ""
	if stopped.Unit != "" {
		path = filepath.Join(a.root, dropin.Path(stopped.Unit))
		if entries, err = readDropIn(path); err != nil {
			return err
		}
	}
	forgets, err := engineForgets(stopped.Lasting, stopped.Record, nil)
	if err != nil {
		return err
	}
	if entries == nil && len(r.Entries) == 0 && forgets == nil {
		return stopped
	}
	if dryRun {
		steps, err := a.tellSteps(forgets)
		if err != nil {
			return err
		}
		if entries != nil {
			steps = append(steps, hold.Step{File: path})
		}
		if len(r.Entries) > 0 {
			steps = append(steps, hold.Step{File: a.recordPath(stopped.Lasting)})
		}
		return a.dryRun("clear", steps)
	}
	if _, err := a.tell(ctx, forgets); err != nil {
		return err
	}
	if entries != nil {
		if err := a.holder().RemoveFile(ctx, path); err != nil {
			return err
		}
	}
	if err := a.holder().RemoveRecord(a.recordPath(stopped.Lasting)); err != nil {
		return err
	}
	kind, _, _ := strings.Cut(spec, ":")
	return a.saidCleared(spec, target.Owner{Kind: kind})
}

// clearGone takes the record of a container that its owner knows no more, or whose owner
// is gone, off by the name that it had. done is false without one.
func (a *app) clearGone(ctx context.Context, spec string, found error, dryRun bool) (done bool, err error) {
	var notFound *target.NotFound
	var noKind *target.NoKindError
	if !errors.As(found, &notFound) && !errors.As(found, &noKind) {
		return false, nil
	}
	h, err := a.io()
	if err != nil || h.Writable() != nil && !dryRun {
		return false, err
	}
	unlock, err := a.lockKept(ctx, false)
	if err != nil {
		return false, err
	}
	defer unlock()
	all, err := kept.List(a.root)
	var its []string
	for _, r := range all {
		if r.Target == spec || r.Name == spec {
			its = append(its, r.Target)
		}
	}
	switch {
	case len(its) == 0:
		return false, nil // and what another's record is like is not asked for
	case len(its) > 1:
		return false, fmt.Errorf("clear %s: limits of several targets are saved under that name; name one of %s", spec, strings.Join(its, ", "))
	case err != nil:
		return false, err
	}
	if dryRun {
		return true, a.dryRun("clear", []hold.Step{{File: a.recordPath(its[0])}})
	}
	if err := a.holder().RemoveRecord(a.recordPath(its[0])); err != nil {
		return false, err
	}
	kind, _, _ := strings.Cut(spec, ":")
	return true, a.saidCleared(spec, target.Owner{Kind: kind})
}

// saidCleared reports that what was kept for a target that does not run is lifted.
func (a *app) saidCleared(spec string, owner target.Owner) error {
	a.out.Say("%s is not running; removed the limit saved for its next start", spec)
	if !a.out.JSON {
		return nil
	}
	h, err := a.io()
	if err != nil {
		return err
	}
	return a.out.Document(setDocument{Schema: cli.SchemaOf("clear"), Target: spec, Version: int(h.Version), Owner: owner, Devices: []setDevice{}})
}
