package keep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/targets/engine"
)

// scope is a drop-in with the limits of a container's scope, which systemd reads when it makes the
// scope (cgroup v2).
type scope struct{ base }

func (scope) By() string                { return "systemd" }
func (scope) May(context.Context) error { return nil }
func (scope) Paces() Paces              { return PaceFollows }

func (k scope) Keep(ctx context.Context, w Wanted, plan *hold.Plan) (Edit, error) {
	if err := k.mayPast(w, *plan); err != nil {
		return Edit{}, err
	}
	entries, err := readDropIn(k.path())
	if err != nil {
		return Edit{}, err
	}
	var edit Edit
	for _, p := range w.Places {
		name, err := systemd.LastingPath(ctx, k.h.Root, p.Device.Number)
		var none *systemd.NoLastingPathError
		if errors.As(err, &none) {
			name, err = systemd.NodeOf(p.Device.Number), nil
			if p.Limit.Bounds() {
				edit.Notes = append(edit.Notes, k.fleeting(p.Device))
			}
		}
		if err != nil {
			return Edit{}, err
		}
		entries = dropin.Merge(k.renamed(ctx, entries, p.Device.Number, name), limit.Asked{On: name, Limit: p.Limit})
	}
	if err := k.plan(plan, entries); err != nil {
		return Edit{}, err
	}
	files, err := k.ofRemoved(ctx)
	if err != nil {
		return Edit{}, err
	}
	other, err := k.other()
	edit.After = removes(k.h, append(files, other...), note.Note{})
	return edit, err
}

// fleeting warns of a device that has no name but its number.
func (k scope) fleeting(d blkdev.Device) note.Note {
	return note.Warningf("fleeting-name", "%s names %s by its number, %s, which may be another disk after a boot: no link in /dev/disk/by-id leads to it, and no file system of it is mounted",
		k.path(), d.Node, d.Number).With(fault.Remedy{Do: fault.SetAgain, Target: k.t.String()})
}

// renamed gives all entries of a device one name: an older one, such as its number, may be another
// disk's after a boot, and systemd would set both.
func (k scope) renamed(ctx context.Context, entries []limit.Asked, dev blkdev.Number, name string) []limit.Asked {
	one := limit.Asked{On: name}
	left := slices.DeleteFunc(slices.Clone(entries), func(e limit.Asked) bool {
		its := k.isOn(ctx, e, dev)
		if its {
			one.Limit = one.Limit.Overlay(e.Limit)
		}
		return its
	})
	if one.Limit.IsZero() {
		return left
	}
	return append(left, one)
}

// isOn reports whether an entry is on a device.
func (k scope) isOn(ctx context.Context, e limit.Asked, dev blkdev.Number) bool {
	on, is := systemd.DeviceOf(ctx, k.h.Root, e.On)
	return is && on == dev || e.On == systemd.NodeOf(dev) // of a disk that is gone
}

func (k scope) Forget(ctx context.Context, only []blkdev.Number, plan *hold.Plan) (Edit, error) {
	edit, err := k.forgetOther(only)
	if err != nil {
		return edit, err
	}
	entries, err := readDropIn(k.path())
	if err != nil || entries == nil {
		return edit, err
	}
	return edit, k.plan(plan, slices.DeleteFunc(entries, func(e limit.Asked) bool {
		return len(only) == 0 || slices.ContainsFunc(only, func(n blkdev.Number) bool { return k.isOn(ctx, e, n) })
	}))
}

func (k scope) Lasts(plan hold.Plan, kept bool) []note.Note {
	if kept && plan.File != nil && plan.File.Text != "" {
		return []note.Note{note.Infof("kept", "%s has systemd set the limit at each start of %s, also after a boot", plan.File.Path, k.t).With(fault.Remedy{Do: fault.Clear})}
	}
	return k.lost(plan)
}

func (k scope) path() string { return filepath.Join(k.h.Root, dropin.Path(k.t.Owner.Unit)) }

// plan adds a scope's drop-in with these entries to a plan.
func (k scope) plan(plan *hold.Plan, entries []limit.Asked) error {
	for i, e := range entries {
		for _, key := range limit.Keys {
			if _, bound := e.Limit.Get(key).Number(); !bound {
				entries[i].Limit = entries[i].Limit.With(key, limit.Rate{})
			}
		}
	}
	entries = slices.DeleteFunc(entries, func(e limit.Asked) bool { return e.Limit.IsZero() })
	if plan.File = (&hold.File{Path: k.path()}); len(entries) == 0 {
		return nil
	}
	var err error
	plan.File.Text, err = dropin.ScopeText(k.t.String(), entries, func(e limit.Asked) []string {
		var lines []string
		for _, s := range systemd.IOLimitAt(e.On, e.Limit) {
			lines = append(lines, s.String())
		}
		return lines
	})
	return err
}

// ofRemoved are weir's drop-ins for containers that their engine has removed: nothing starts those
// again.
func (k scope) ofRemoved(ctx context.Context) (gone []hold.File, err error) {
	for _, maker := range engine.Makers() {
		if maker.Kind() != k.t.Kind {
			continue
		}
		files, err := filepath.Glob(filepath.Join(k.h.Root, dropin.Path("*.scope")))
		if err != nil {
			return nil, fmt.Errorf("look for drop-ins of removed containers: %w", err)
		}
		for _, file := range files {
			id, is := maker.IDOfScope(strings.TrimSuffix(filepath.Base(filepath.Dir(file)), ".d"))
			if !is || !k.h.Containers(maker, nil).Removed(ctx, id) {
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
