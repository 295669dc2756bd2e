package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/dropin"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/engine"
)

// keepsScope reports whether a target is in a scope that is made with the same name at
// each of its starts, as a container's is of its id, so that a drop-in can set its limits.
func keepsScope(t target.Target, version cgroupfs.Version) bool {
	return (t.Kind == "docker" || t.Kind == "podman") && version == cgroupfs.V2 && strings.HasSuffix(t.Owner.Unit, ".scope") && !keepsEngine(t)
}

// persistScope adds a drop-in with limits to those that a scope's has.
func (a *app) persistScope(t target.Target, plan *hold.Plan) error {
	path := filepath.Join(a.root, dropin.Path(t.Owner.Unit))
	entries, err := readDropIn(path)
	if err != nil {
		return err
	}
	for _, c := range plan.Changes {
		entries = dropin.Merge(entries, limit.Asked{On: systemd.NodeOf(c.Device), Limit: c.Limit})
	}
	return scopeDropIn(t, plan, path, entries)
}

// ofRemoved are weir's drop-ins for containers that their engine has removed: nothing starts
// those again.
func (a *app) ofRemoved(ctx context.Context, t target.Target) (gone []hold.File, err error) {
	for _, maker := range engine.Makers() {
		if maker.Kind() != t.Kind {
			continue
		}
		files, err := filepath.Glob(filepath.Join(a.root, dropin.Path("*.scope")))
		if err != nil {
			return nil, fmt.Errorf("look for drop-ins of removed containers: %w", err)
		}
		for _, file := range files {
			id, is := maker.IDOfScope(strings.TrimSuffix(filepath.Base(filepath.Dir(file)), ".d"))
			if !is || !a.containers(maker, nil).Removed(ctx, id) {
				continue
			}
			if _, err := readDropIn(file); err != nil {
				continue // somebody else's
			}
			gone = append(gone, hold.File{Path: file})
		}
	}
	return gone, nil
}

// scopeDropIn adds a scope's drop-in with these entries to a plan.
func scopeDropIn(t target.Target, plan *hold.Plan, path string, entries []limit.Asked) error {
	for i, e := range entries {
		for _, k := range limit.Keys {
			if _, bound := e.Limit.Get(k).Number(); !bound {
				entries[i].Limit = entries[i].Limit.With(k, limit.Rate{})
			}
		}
	}
	entries = slices.DeleteFunc(entries, func(e limit.Asked) bool { return e.Limit.IsZero() })
	if plan.File = (&hold.File{Path: path}); len(entries) == 0 {
		return nil
	}
	var err error
	plan.File.Text, err = dropin.ScopeText(t.String(), entries, func(e limit.Asked) []string {
		var lines []string
		for _, s := range systemd.IOLimitAt(e.On, e.Limit) {
			lines = append(lines, s.String())
		}
		return lines
	})
	return err
}

// unpersistScope has a plan take devices, or all, out of a scope's drop-in.
func (a *app) unpersistScope(t target.Target, plan *hold.Plan, only []blkdev.Number) error {
	path := filepath.Join(a.root, dropin.Path(t.Owner.Unit))
	entries, err := readDropIn(path)
	if err != nil || entries == nil {
		return err
	}
	return scopeDropIn(t, plan, path, slices.DeleteFunc(entries, func(e limit.Asked) bool {
		return len(only) == 0 || slices.ContainsFunc(only, func(n blkdev.Number) bool { return systemd.NodeOf(n) == e.On })
	}))
}
