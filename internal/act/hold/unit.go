package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// units is the part of *systemd.Conn that hold uses.
type units interface {
	IOLimits(ctx context.Context, unit string) ([]systemd.PathLimit, error)
	Anchor(ctx context.Context, slice string, accounting systemd.Setting) error
	Set(ctx context.Context, unit string, persist bool, settings []systemd.Setting) error
	Kept(unit string) ([]limit.Key, error)
	Forget(ctx context.Context, unit string, keys []limit.Key) error
	Tidy(ctx context.Context, unit string) error
	Lasting(ctx context.Context, dev blkdev.Number) (string, error)
	Respell(ctx context.Context, unit string, paths []string) error
	Reload(ctx context.Context) error
	Close() error
}

type dialer func(context.Context) (units, error)

func (h Holder) dial(ctx context.Context) (units, error) {
	if h.systemd != nil {
		return h.systemd(ctx)
	}
	conn, err := h.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// accounting is the setting that makes systemd give a unit a group of its own in v1's blkio
// hierarchy, or the io controller in v2's.
func accounting(v cgroupfs.Version) systemd.Setting {
	if v == cgroupfs.V1 {
		return systemd.Accounting("BlockIO")
	}
	return systemd.Accounting("IO")
}

// sets reports whether the plan sets anything for which the group must stay.
func (p Plan) sets() bool {
	return !p.Lift && slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Limit.Bounds() })
}

// Account makes systemd give a unit on cgroup v1 a group of its own, until the next boot.
// Otherwise the unit has one only while a unit beside it asks for accounting: systemd removes
// the group, with the limit in it, when the last such unit stops. A unit that systemd does not
// know needs no group. slice is the unit's slice; see Anchor.
func (h Holder) Account(ctx context.Context, io *cgroupfs.Hierarchy, unit, slice string) error {
	if err := h.Anchor(ctx, io, slice); err != nil {
		return err
	}
	return account(ctx, unit, h.dial)
}

func account(ctx context.Context, unit string, connect dialer) error {
	ctx, cancel := context.WithTimeout(ctx, unitTimeout)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = conn.Set(ctx, unit, false, []systemd.Setting{accounting(cgroupfs.V1)})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// unitTimeout bounds how long systemd may take to change a unit, which means cgroup writes and
// a drop-in file.
const unitTimeout = 20 * time.Second

// A journalSetting is what a unit's settings said of a path, and will say.
type journalSetting struct {
	Path string `json:"path"`
	turn
}

// Steps is Plan.Steps with a unit's devices named by the paths that Apply would send, if
// systemd can be asked for them.
func (h Holder) Steps(ctx context.Context, p Plan) []Step {
	if p.Unit == "" || p.Group.Hierarchy().Writable() != nil {
		return p.Steps()
	}
	ctx, cancel := context.WithTimeout(ctx, unitTimeout)
	defer cancel()
	conn, err := h.dial(ctx)
	if err != nil {
		return p.Steps()
	}
	defer conn.Close()
	all, err := p.spell(ctx, conn)
	if err != nil {
		return p.Steps()
	}
	return p.unitSteps(all)
}

// applyUnit lets systemd write the rules, and checks that the kernel has them. Rules of devices
// that systemd goes past it writes itself: systemd leaves lines of io.max alone that none of its
// settings leads to.
func (p Plan) applyUnit(ctx context.Context, dir state.Dir, connect dialer) error {
	ctx, cancel := context.WithTimeout(ctx, unitTimeout)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	as, err := p.spell(ctx, conn)
	if err != nil {
		return err
	}
	entry, err := journalOf(p)
	if err != nil {
		return err
	}
	entry.Settings, entry.Dropped, entry.Persist, entry.Unkept = as.settings, as.dropped, p.Persist, as.unkept
	record, err := dir.New(journalKind, entry)
	if err != nil {
		return err
	}
	if p.Note != nil {
		as.tell(p)
	}
	err = as.set(ctx, conn, p)
	if err == nil && entry.File != nil {
		err = entry.File.apply(ctx, connect)
	}
	if err == nil {
		err = as.ensure(p)
	}
	if err == nil && len(as.drop) > 0 {
		if err = conn.Respell(ctx, p.Unit, as.drop); err == nil {
			err = as.ensure(p)
		}
	}
	if err == nil && p.Lift {
		err = conn.Tidy(ctx, p.Unit)
	}
	if err == nil {
		err = p.pace()
	}
	if err != nil {
		reverted := entry.revertUnit(connect)
		if entry.File != nil {
			reverted = errors.Join(reverted, entry.File.revert(connect))
		}
		return errors.Join(err, finish(record, errors.Join(reverted, entry.revert(p.Group))))
	}
	return record.Done()
}

// revertUnit restores a unit's settings where they still have the values of the change: systemd
// applies a change completely or refuses it. It uses a connection of its own, because the one
// that failed may be unusable.
func (j journal) revertUnit(connect dialer) error {
	ctx, cancel := context.WithTimeout(context.Background(), unitTimeout)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("undo a half-done change of unit %s: %w: %w", j.Unit, state.ErrKeep, err)
	}
	defer conn.Close()
	now, err := conn.IOLimits(ctx, j.Unit)
	if err != nil {
		return fmt.Errorf("undo a half-done change: %w", err)
	}
	var kept, other []systemd.Setting // over boots, and until the next
	for path, back := range j.backOf(now) {
		if j.Persist {
			kept = append(kept, systemd.IOLimitAt(path, only(back, without(limit.Keys[:], j.Unkept)))...)
			back = only(back, j.Unkept)
		}
		other = append(other, systemd.IOLimitAt(path, back)...)
	}
	if len(kept) > 0 {
		err = conn.Set(ctx, j.Unit, true, kept)
	}
	if err == nil && len(other) > 0 {
		err = conn.Set(ctx, j.Unit, false, other)
	}
	if err == nil && len(other) > 0 && j.Persist {
		err = conn.Forget(ctx, j.Unit, j.Unkept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("undo a half-done change: %w", err)
	}
	return nil
}

// backOf returns the rates that each path gets back, given what systemd has now. A path that
// systemd was told to forget gets all its rates back.
func (j journal) backOf(now []systemd.PathLimit) iter.Seq2[string, limit.Limit] {
	of := func(path string) (limit.Limit, bool) {
		i := slices.IndexFunc(now, func(l systemd.PathLimit) bool { return l.Path == path })
		if i < 0 {
			return limit.None, false
		}
		return now[i].Limit, true
	}
	return func(yield func(string, limit.Limit) bool) {
		var forgotten []string
		for _, d := range j.Dropped {
			if _, has := of(d.Path); !has {
				forgotten = append(forgotten, d.Path)
				if !yield(d.Path, d.Before) {
					return
				}
			}
		}
		for _, s := range j.Settings {
			is, _ := of(s.Path)
			if !slices.Contains(forgotten, s.Path) && !yield(s.Path, s.back(is, asItIs)) {
				return
			}
		}
	}
}

// asItIs: systemd keeps a rate as it is.
func asItIs(_ limit.Key, r limit.Rate) limit.Rate { return r }

// only returns the named rates of a limit.
func only(l limit.Limit, keys []limit.Key) limit.Limit {
	var kept limit.Limit
	for _, k := range keys {
		kept = kept.With(k, l.Get(k))
	}
	return kept
}

func without(keys, others []limit.Key) []limit.Key {
	return slices.DeleteFunc(slices.Clone(keys), func(k limit.Key) bool { return slices.Contains(others, k) })
}
