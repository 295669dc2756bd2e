package hold

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/state"
)

// journalKind names the records of changes that take more than one write.
const journalKind = "set"

// A journal is what a group's rules were before a change, and what they are to be.
type journal struct {
	Version cgroupfs.Version `json:"version"`
	Group   string           `json:"group"`
	Rules   []journalRule    `json:"rules"`
}

type journalRule struct {
	Device blkdev.Number `json:"device"`
	Before limit.Limit   `json:"before"`
	After  limit.Limit   `json:"after"`
}

func journalOf(p Plan) (journal, error) {
	j := journal{Version: p.Group.Hierarchy().Version, Group: p.Group.Path()}
	for _, c := range p.Changes {
		before, err := p.Group.Rule(c.Device)
		if err != nil {
			return journal{}, err
		}
		j.Rules = append(j.Rules, journalRule{Device: c.Device, Before: before, After: c.Limit})
	}
	return j, nil
}

// revert gives every rate that has the value the change was to set the one it had
// before. A rate with any other value was not reached, or was set by somebody since.
func (j journal) revert(g cgroupfs.Group) error {
	var errs []error
	for _, r := range j.Rules {
		now, err := g.Rule(r.Device)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var back limit.Limit
		for _, k := range limit.Keys {
			if after := r.After.Get(k); after.IsSet() && now.Get(k) == after && r.Before.Get(k) != after {
				back = back.With(k, r.Before.Get(k))
			}
		}
		if !back.IsZero() {
			errs = append(errs, g.SetRule(r.Device, back))
		}
	}
	return errors.Join(errs...)
}

// Undo takes back the changes that killed weirs left half done.
func Undo(dir state.Dir, fs *cgroupfs.FS) error {
	return dir.Sweep(journalKind, func(data []byte) error {
		var j journal
		if err := json.Unmarshal(data, &j); err != nil {
			return fmt.Errorf("read record of a half-done change: %w", err)
		}
		h, err := fs.IO(j.Version)
		if err != nil {
			return err
		}
		g, err := h.Group(j.Group)
		if err != nil {
			return err
		}
		exists, err := g.Exists()
		if err != nil || !exists {
			return err
		}
		if err := j.revert(g); err != nil {
			return fmt.Errorf("take back half-done change of %s: %w", g.Dir(), err)
		}
		return nil
	})
}
