package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/dropin"
	"github.com/weir-io/weir/internal/kept"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
)

// clearStopped lifts what is kept for a unit or a container that does not run, and so has
// no group. It returns the error that found that, for anything else.
func (a *app) clearStopped(ctx context.Context, spec string, found error) error {
	var stopped *target.StoppedError
	if errors.As(found, &stopped) {
		return a.clearContainer(ctx, spec, stopped)
	}
	if done, err := a.clearGone(spec, found); done || err != nil {
		return err
	}
	var notFound *target.NotFound
	if name, is := strings.CutPrefix(spec, "vm:"); is && errors.As(found, &notFound) {
		if !a.clearDomain(ctx, name) {
			return found
		}
		return a.saidCleared(spec, target.Owner{Kind: "libvirt", Name: name})
	}
	name, isUnit := strings.CutPrefix(spec, "unit:")
	if !errors.As(found, &notFound) || !isUnit || a.root != "/" || !systemd.Running(a.root) {
		return found
	}
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
	settings, err := systemd.HasDropIns(a.root, u.Name)
	if err != nil {
		return err
	}
	path := filepath.Join(a.root, dropin.Path(u.Name))
	entries, err := readDropIn(path)
	if err != nil {
		return err
	}
	if !settings && entries == nil {
		return found
	}
	if settings {
		if err := conn.Lift(ctx, u.Name); err != nil {
			return err
		}
	}
	if entries != nil {
		if err := a.holder().RemoveFile(ctx, path); err != nil {
			return err
		}
	}
	return a.saidCleared("unit:"+u.Name, target.Owner{Kind: "systemd", Name: u.Name})
}

// clearContainer removes weir's record of a container that does not run, and the drop-in
// of a scope that systemd will make for it, and has its engine keep no limits.
func (a *app) clearContainer(ctx context.Context, spec string, stopped *target.StoppedError) error {
	h, err := a.io()
	if err != nil {
		return err
	}
	if err := h.Writable(); err != nil {
		return err
	}
	unlock, err := a.lockKept(false)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := kept.Read(a.root, stopped.Lasting)
	if err != nil {
		return err
	}
	var entries []dropin.Entry
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
func (a *app) clearGone(spec string, found error) (done bool, err error) {
	var notFound *target.NotFound
	var noKind *target.NoKindError
	if !errors.As(found, &notFound) && !errors.As(found, &noKind) {
		return false, nil
	}
	h, err := a.io()
	if err != nil || h.Writable() != nil {
		return false, err
	}
	unlock, err := a.lockKept(false)
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
		return false, fmt.Errorf("clear %s: limits of more than one are on record by that name; name one of %s", spec, strings.Join(its, ", "))
	case err != nil:
		return false, err
	}
	if err := a.holder().RemoveRecord(a.recordPath(its[0])); err != nil {
		return false, err
	}
	kind, _, _ := strings.Cut(spec, ":")
	return true, a.saidCleared(spec, target.Owner{Kind: kind})
}

// saidCleared reports that what was kept for a target that does not run is lifted.
func (a *app) saidCleared(spec string, owner target.Owner) error {
	a.out.Say("%s does not run; what was kept for its next start is lifted", spec)
	if !a.out.JSON {
		return nil
	}
	h, err := a.io()
	if err != nil {
		return err
	}
	return a.out.Document(setDocument{Schema: cli.SchemaOf("clear"), Target: spec, Version: int(h.Version), Owner: owner, Devices: []setDevice{}})
}
