package hold

import (
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// journalKind is the kind of records of changes that take more than one write.
const journalKind = "set"

// A journal is what a group's rules were before a change, and what they will be; for a unit,
// its settings as well.
type journal struct {
	Version  cgroupfs.Version `json:"version"`
	Group    rawtext.Text     `json:"group"`
	Rules    []journalRule    `json:"rules"`
	Unit     string           `json:"unit,omitempty"`
	Settings []journalSetting `json:"settings,omitempty"`
	Dropped  []journalSetting `json:"dropped,omitempty"` // what systemd is to forget; see Plan.nameOf
	Persist  bool             `json:"persist,omitempty"` // the settings are for good
	Unkept   []limit.Key      `json:"unkept,omitempty"`  // of those, the rates that were not kept so before
	File     *journalFile     `json:"file,omitempty"`
	Pacing   *journalPacing   `json:"pacing,omitempty"`
}

// A journalPacing says that the pacer is part of the change too.
type journalPacing struct {
	Before *limit.Pacing `json:"before"` // as Pacing has it
}

type journalRule struct {
	Device blkdev.Number `json:"device"`
	turn
}

// A turn is a limit before and after a change.
type turn struct {
	Before limit.Limit `json:"before"` // the rates that the change names, at least
	After  limit.Limit `json:"after"`  // those rates alone
}

// back returns the rates to set so that a limit, which is now now, is as it was before. It
// leaves out rates that have neither the change's value nor the one that the kernel keeps of
// it: the change did not reach them, or somebody has set them since.
func (t turn) back(now limit.Limit, keeps func(limit.Key, limit.Rate) limit.Rate) limit.Limit {
	var back limit.Limit
	for _, k := range limit.Keys {
		before, after, is := t.Before.Get(k), t.After.Get(k), now.Get(k)
		if after.IsSet() && is != before && (is == after || is == keeps(k, after)) {
			back = back.With(k, before)
		}
	}
	return back
}

func journalOf(p Plan) (journal, error) {
	j := journal{Version: p.Group.Hierarchy().Version, Group: rawtext.Text(p.Group.Path()), Unit: p.Unit}
	for _, c := range p.Changes {
		before, err := p.Group.RuleWith(c.Device, c.Limit)
		if p.Unit != "" && fault.IsUnsupported(err) {
			before, err = limit.None, nil // systemd enables io for a unit with its first limit
		}
		if err != nil {
			return journal{}, err
		}
		j.Rules = append(j.Rules, journalRule{c.Device, turn{before, c.Limit}})
	}
	if p.Pacing != nil {
		j.Pacing = &journalPacing{p.Pacing.Before}
	}
	if p.File == nil {
		return j, nil
	}
	file, err := journalOfFile(*p.File)
	j.File = file
	return j, err
}

// missing are those of a plan's changes that are not in force. Who writes a rule again that is there has everybody look at it
// who follows the files, and has the kernel begin its slices of time anew.
func (j journal) missing(all []Change) (left []Change) {
	for i, r := range j.Rules {
		if r.Before.Overlay(r.After) != r.Before {
			left = append(left, all[i])
		}
	}
	return left
}

// revert writes the group's rules as they were before the change. If the group is gone, or has
// no rules any more, there is nothing to do.
func (j journal) revert(g cgroupfs.Group) error {
	var errs []error
	for _, r := range j.Rules {
		now, err := g.Rule(r.Device)
		if cgroupfs.IsGone(err) || fault.IsUnsupported(err) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if back := r.back(now, g.Hierarchy().Keeps); !back.IsZero() {
			errs = append(errs, g.SetRule(r.Device, back))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("undo a half-done change of %s: %w", g.Dir(), err)
	}
	return nil
}

// finish ends a change that was taken back. What could not be taken back stays on record.
func finish(record *state.Record, reverted error) error {
	if reverted != nil {
		return errors.Join(reverted, record.Leave())
	}
	return record.Done()
}

// Undo takes back the changes that killed weirs left half done. A change of a unit stays on
// record while systemd cannot be reached, and one of a group while another weir works on that
// group.
func (h Holder) Undo(fs *cgroupfs.FS) error {
	return errors.Join(putBack(h.State, fs), h.undo(fs, h.dial))
}

func (h Holder) undo(fs *cgroupfs.FS, connect dialer) error {
	return state.Sweep(h.State, journalKind, func(j journal) error {
		hierarchy, err := fs.IO(j.Version)
		if err != nil {
			return err
		}
		g, err := hierarchy.Group(string(j.Group))
		if err != nil {
			return err
		}
		lock, err := h.State.Try(cgroupfs.LimitsLock(j.Version, string(j.Group)))
		if err != nil {
			return err
		}
		if lock == nil {
			return state.ErrKeep
		}
		defer lock.Unlock()
		return j.undo(g, connect, h.Pacer)
	})
}

// undo takes a whole change back. The pacer comes last: it holds what the rules say then.
func (j journal) undo(g cgroupfs.Group, connect dialer, p Pacer) error {
	if j.Unit != "" {
		if err := j.revertUnit(connect); err != nil {
			return err
		}
	}
	if j.File != nil {
		if err := j.File.revert(connect); err != nil {
			return err
		}
	}
	if err := j.revert(g); err != nil || j.Pacing == nil || p == nil {
		return err
	}
	if err := p.Follow(g, j.Pacing.Before); err != nil {
		return fmt.Errorf("undo a half-done change of %s: %w", g.Dir(), err)
	}
	return nil
}
