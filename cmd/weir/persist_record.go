package main

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/engine"
)

// keepsRecord reports whether weir itself keeps a target's limits: its owner starts it
// again by the same name, and nothing else sets limits then.
func keepsRecord(t target.Target, version cgroupfs.Version) bool {
	return t.Lasting != "" && !keepsScope(t, version) && !keepsEngine(t)
}

// persistRecord adds limits to those that are on record for a target.
func (a *app) persistRecord(t target.Target, plan *hold.Plan, limits []limit.Asked, how limit.Hold) error {
	r, err := kept.Read(a.root, t.Lasting)
	if err != nil {
		return err
	}
	r.Name, r.Host = t.String(), a.host.Socket(t.Kind)
	if r.Entries, err = a.merge(r.Entries, limits, how); err != nil {
		return err
	}
	return a.planRecord(plan, r)
}

// keptFor reads the saved limits of a target.
func (a *app) keptFor(t target.Target) (kept.Record, error) {
	if t.Lasting == "" {
		return kept.Record{}, nil
	}
	return kept.Read(a.root, t.Lasting)
}

// keptIn is the file in which weir keeps limits of a target; empty: it keeps none.
func (a *app) keptIn(t target.Target) (string, error) {
	r, err := a.keptFor(t)
	if err != nil || len(r.Entries) > 0 {
		return a.recordPath(t.Lasting), err
	}
	if !keepsScope(t, t.Group.Hierarchy().Version) {
		return "", nil
	}
	path := filepath.Join(a.root, dropin.Path(t.Owner.Unit))
	entries, err := readDropIn(path)
	if err != nil || len(entries) == 0 {
		return "", err
	}
	return path, nil
}

// planRecord adds a record to a plan.
func (a *app) planRecord(plan *hold.Plan, r kept.Record) error {
	r.Entries = thatBind(r.Entries)
	text, err := r.Text()
	plan.File = &hold.File{Path: a.recordPath(r.Target), Text: text, Own: true}
	return err
}

// unpersistRecord has a plan take devices, or all, out of a target's record.
func (a *app) unpersistRecord(ctx context.Context, t target.Target, plan *hold.Plan, only []blkdev.Number) error {
	r, err := kept.Read(a.root, t.Lasting)
	if err != nil || len(r.Entries) == 0 {
		return err
	}
	if len(only) == 0 {
		r.Entries = nil
	} else {
		r.Entries = a.withoutDevices(ctx, r.Entries, only)
	}
	return a.planRecord(plan, r)
}

// recordPath is where a target's record is.
func (a *app) recordPath(lasting string) string { return filepath.Join(a.root, kept.Path(lasting)) }

// otherKept are the files that keep limits for a target from when it was started otherwise:
// on another version of cgroups, or by another driver or version of its owner's. They would
// set another limit.
func (a *app) otherKept(t target.Target) (files []hold.File, err error) {
	if t.Lasting == "" {
		return nil, nil
	}
	version := t.Group.Hierarchy().Version
	if !keepsRecord(t, version) {
		r, err := kept.Read(a.root, t.Lasting)
		if err != nil {
			return nil, err
		}
		if len(r.Entries) > 0 {
			files = append(files, hold.File{Path: a.recordPath(t.Lasting), Own: true})
		}
	}
	if keepsScope(t, version) {
		return files, nil
	}
	for _, m := range engine.Makers() {
		_, id, _ := strings.Cut(t.Lasting, ":")
		if m.Kind() != t.Kind {
			continue
		}
		path := filepath.Join(a.root, dropin.Path(m.ScopeOf(id)))
		entries, err := readDropIn(path)
		if err != nil {
			return nil, err
		}
		if entries != nil {
			files = append(files, hold.File{Path: path})
		}
	}
	return files, nil
}

// keepNoOther removes what otherKept finds, and reports whether there was any.
func (a *app) keepNoOther(ctx context.Context, t target.Target) (removed bool, err error) {
	files, err := a.otherKept(t)
	for _, f := range files {
		err = errors.Join(err, a.removeKept(ctx, f))
	}
	return len(files) > 0, err
}

// removeKept removes a file that keeps limits.
func (a *app) removeKept(ctx context.Context, f hold.File) error {
	if f.Own {
		return a.holder().RemoveRecord(f.Path)
	}
	return a.holder().RemoveFile(ctx, f.Path)
}

// lockKept keeps other weirs from changing saved limits while this one does. With make it makes
// the directory, the first step of saving.
func (a *app) lockKept(ctx context.Context, make bool) (unlock func(), err error) {
	if a.root != "/" || os.Geteuid() != 0 {
		return func() {}, nil // a copy's records stay as they are, and root's are not others' to change
	}
	if make {
		if err := kept.Make(a.root); err != nil {
			return nil, fmt.Errorf("keep limits: %w", err)
		}
	}
	lock, err := a.state.Wait(ctx, kept.Dir, "the kept limits", state.LockMost)
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}

// merge adds limits to the saved ones, with what holds buffered writes.
func (a *app) merge(entries []limit.Asked, limits []limit.Asked, how limit.Hold) ([]limit.Asked, error) {
	for _, l := range limits {
		on, err := a.lastingPlace(l.On)
		if err != nil {
			return nil, err
		}
		entries = dropin.Merge(entries, limit.Asked{On: on, Limit: l.Limit, Hold: how})
	}
	return entries, nil
}

// thatBind leaves out what limits nothing; of entries that bind nothing together, all.
func thatBind(entries []limit.Asked) []limit.Asked {
	entries = slices.DeleteFunc(entries, func(e limit.Asked) bool { return e.Limit.IsZero() })
	if !slices.ContainsFunc(entries, func(e limit.Asked) bool { return e.Limit.Bounds() }) {
		return nil
	}
	return entries
}

// flagsOf spells saved limits as flags of weir set.
func flagsOf(e limit.Asked) []string {
	return cli.Words(e)
}
