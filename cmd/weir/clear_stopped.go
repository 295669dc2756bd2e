package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/dropin"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
)

// clearStopped lifts what is kept for a unit that does not run, and so has no group. It
// returns the error that found that, for anything else.
func (a *app) clearStopped(ctx context.Context, spec string, found error) error {
	var notFound *target.NotFound
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
	a.out.Say("unit:%s does not run; what was kept for its next start is lifted", u.Name)
	if a.out.JSON {
		return a.out.Document(setDocument{Schema: cli.SchemaOf("clear"), Target: "unit:" + u.Name, Version: int(h.Version),
			Owner: target.Owner{Kind: "systemd", Name: u.Name}, Devices: []setDevice{}})
	}
	return nil
}
