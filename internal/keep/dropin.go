package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/note"
)

// dropIn is a drop-in of a service that runs weir at each of its starts (cgroup v1).
type dropIn struct{ base }

func (dropIn) By() string   { return "systemd" }
func (dropIn) Paces() Paces { return PaceStarts }

func (k dropIn) May(ctx context.Context) error {
	if err := k.mayUnit(); err != nil {
		return err
	}
	return k.mayTransient(ctx)
}

func (k dropIn) Keep(_ context.Context, w Wanted, plan *hold.Plan) (Edit, error) {
	path := filepath.Join(k.h.Root, dropin.Path(k.t.Name))
	entries, err := readDropIn(path)
	if err != nil {
		return Edit{}, err
	}
	if entries, err = merge(k.h, entries, w); err != nil {
		return Edit{}, err
	}
	return Edit{}, k.plan(k.t.Name, path, entries, plan)
}

func (k dropIn) Forget(ctx context.Context, only []blkdev.Number, plan *hold.Plan) (Edit, error) {
	path := filepath.Join(k.h.Root, dropin.Path(k.t.Owner.Unit))
	entries, err := readDropIn(path)
	if err != nil || entries == nil {
		return Edit{}, err
	}
	if len(only) == 0 {
		plan.File = &hold.File{Path: path}
		return Edit{}, nil
	}
	return Edit{}, k.plan(k.t.Owner.Unit, path, withoutDevices(ctx, k.h, entries, only), plan)
}

// plan adds the drop-in with these entries to a plan.
func (k dropIn) plan(unit, path string, entries []limit.Asked, plan *hold.Plan) error {
	if entries = thatBind(entries); entries == nil {
		plan.File = &hold.File{Path: path}
		return nil
	}
	program, err := k.h.Program()
	if err != nil {
		return err
	}
	text, err := dropin.Text(unit, program, entries, cmdline.Words)
	if err != nil {
		return fmt.Errorf("make drop-in: %w", err)
	}
	plan.File = &hold.File{Path: path, Text: text}
	return nil
}

func (k dropIn) Lasts(plan hold.Plan, kept bool) []note.Note {
	if kept && plan.File != nil && plan.File.Text != "" {
		return []note.Note{note.Infof("kept", "systemd keeps no limits on cgroup v1, so %s runs weir at each start of %s", plan.File.Path, k.t.Owner.Unit).With(fault.Remedy{Do: fault.Clear})}
	}
	return k.lost(plan)
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

// merge adds wanted limits to saved ones, with what holds buffered writes.
func merge(h *host.Host, entries []limit.Asked, w Wanted) ([]limit.Asked, error) {
	for _, l := range w.Asked {
		on, err := lastingPlace(h, l.On)
		if err != nil {
			return nil, err
		}
		entries = dropin.Merge(entries, limit.Asked{On: on, Limit: l.Limit, Hold: w.Hold})
	}
	return entries, nil
}

// lastingPlace spells a place so that it means the same in any directory. It leaves names that are
// no paths, such as a device's name.
func lastingPlace(h *host.Host, on string) (string, error) {
	if on == "" || filepath.IsAbs(on) || !h.IsOwn() {
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
		return "", fmt.Errorf("find the place %s: %w", on, err)
	}
	return path, nil
}

// thatBind leaves out what limits nothing; of entries that bind nothing together, all.
func thatBind(entries []limit.Asked) []limit.Asked {
	entries = slices.DeleteFunc(entries, func(e limit.Asked) bool { return e.Limit.IsZero() })
	if !slices.ContainsFunc(entries, func(e limit.Asked) bool { return e.Limit.Bounds() }) {
		return nil
	}
	return entries
}

// withoutDevices removes devices from what a drop-in or a record sets: it drops entries that are
// only on these devices, and overrides those that are on others too, or on unknown devices, by an
// entry at the end.
func withoutDevices(ctx context.Context, h *host.Host, entries []limit.Asked, gone []blkdev.Number) []limit.Asked {
	var left []limit.Asked
	overrule := map[blkdev.Number]bool{}
	for _, e := range entries {
		var on []blkdev.Number
		var err error
		if e.On != "" {
			on, err = h.DevicesOf(ctx, []string{e.On})
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
