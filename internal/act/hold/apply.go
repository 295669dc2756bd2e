package hold

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// A Change is the rates to set for a group on one device. Unset rates stay as they are;
// unlimited rates are removed.
type Change struct {
	Device blkdev.Number
	Limit  limit.Limit
}

// A Plan describes how changes are put into force on one group.
type Plan struct {
	Group   cgroupfs.Group
	Unit    string          // the systemd unit that owns the group; empty if weir writes
	Past    []blkdev.Number // devices that systemd goes past (systemd.GoesPast): weir writes the unit's rules of these
	Account string          // the unit that is to keep a group that weir writes; see Holder.Account
	Anchor  string          // the slice that systemd is to leave the limit in force in; see Holder.Anchor
	Changes []Change
	File    *File   // beside them
	Persist bool    // systemd keeps the changes over a boot
	Lift    bool    // the changes lift limits: of their drop-ins nothing is left
	Keep    bool    // rules that weir writes are not written where they are in force
	Pacing  *Pacing // what weir's pacer is asked once they are in force; nil: nothing

	Note func(text string) // is told what its maker should know, before it is done; nil: nobody is
}

// A Step is one action of a plan: a group to make, a line for a file, a property of a unit, or one
// of the rest.
type Step struct {
	Mkdir    string `json:"mkdir,omitempty"`
	File     string `json:"file,omitempty"`
	Line     string `json:"line,omitempty"`
	Unit     string `json:"unit,omitempty"`
	Property string `json:"property,omitempty"`
	Persist  bool   `json:"persist,omitempty"` // the property is for good, and not until the next boot

	Pace *Pace `json:"pace,omitempty"` // weir's pacer is asked

	Command string `json:"command,omitempty"` // a program that is run, with its arguments, as a shell spells them

	Call string `json:"call,omitempty"` // what weir has the kernel do by a system call, in words
}

// A Holder applies plans.
type Holder struct {
	State   state.Dir
	Connect func(context.Context) (*systemd.Conn, error)
	Pacer   Pacer // is asked where a change is taken back that a dead weir had asked it about; nil: nobody is

	systemd dialer // stands in for it in tests; nil: Connect
}

// Steps lists what Apply does, in order. Devices of a unit appear by number; see Holder.Steps.
func (p Plan) Steps() []Step {
	if p.Unit != "" {
		return p.unitSteps(p.unasked(nil))
	}
	var steps []Step
	if p.sets() && p.Anchor != "" {
		steps = AnchorSteps(p.Group.Hierarchy(), p.Anchor)
	}
	if p.sets() && p.Account != "" {
		steps = append(steps, Step{Unit: p.Account, Property: accounting(p.Group.Hierarchy().Version).String()})
	}
	for _, w := range p.writes() {
		steps = append(steps, Step{File: w.File, Line: w.Line})
	}
	return append(steps, p.fileSteps()...)
}

func (p Plan) fileSteps() []Step {
	if p.File == nil {
		return nil
	}
	return []Step{{File: p.File.Path, Line: p.File.Text}}
}

// Apply locks the plan's group, and puts the plan into force; see Locked.Apply.
func (h Holder) Apply(ctx context.Context, p Plan) error {
	l, err := h.Lock(ctx, p.Group)
	if err != nil {
		return err
	}
	defer l.Unlock()
	return l.Apply(ctx, p)
}

// Apply puts the plan into force, completely or not at all. It takes back what was written
// before a refusal; after a kill -9 the next weir command does that (see Undo). An anchor
// stays, which limits nothing.
func (h Locked) Apply(ctx context.Context, p Plan) error {
	if p.Group != h.Group {
		return fmt.Errorf("set limits of %s: weir has locked %s", p.Group.Dir(), h.Group.Dir())
	}
	if len(p.Changes) == 0 && p.File == nil {
		return p.pace()
	}
	if p.Unit != "" {
		return p.applyUnit(ctx, h.State, h.dial)
	}
	if err := p.Group.MaySetRule(); err != nil {
		return err
	}
	if p.sets() && p.Account != "" {
		if err := h.Account(ctx, p.Group.Hierarchy(), p.Account, p.Anchor); err != nil {
			return err
		}
	} else if p.sets() && p.Anchor != "" {
		if err := h.Anchor(ctx, p.Group.Hierarchy(), p.Anchor); err != nil {
			return &AnchorError{p.Anchor, p.Group.Hierarchy().Version, err}
		}
	}
	entry, err := journalOf(p)
	if err != nil {
		return err
	}
	if p.Keep {
		p.Changes = entry.missing(p.Changes)
	}
	if len(p.writes()) < 2 && p.File == nil && p.Pacing == nil { // one write(2) is done or not: a kill leaves nothing half done
		if err := p.write(); err != nil {
			return errors.Join(err, entry.revert(p.Group))
		}
		return nil
	}
	record, err := h.State.New(journalKind, entry)
	if err != nil {
		return err
	}
	err = p.write()
	written := err == nil
	if written && entry.File != nil {
		err = entry.File.apply(ctx, h.dial)
	}
	if err == nil {
		err = p.pace()
	}
	if err == nil {
		return record.Done()
	}
	var reverted error
	if written && entry.File != nil {
		reverted = entry.File.revert(h.dial)
	}
	return errors.Join(err, finish(record, errors.Join(reverted, entry.revert(p.Group))))
}

func (p Plan) pace() error {
	if p.Pacing == nil {
		return nil
	}
	return p.Pacing.Do()
}

// writes lists the lines for a group whose files weir writes.
func (p Plan) writes() []cgroupfs.Write {
	var all []cgroupfs.Write
	for _, c := range p.Changes {
		all = append(all, p.Group.RuleWrites(c.Device, c.Limit)...)
	}
	return all
}

func (p Plan) write() error {
	for _, c := range p.Changes {
		if err := p.Group.SetRule(c.Device, c.Limit); err != nil {
			return err
		}
	}
	return nil
}

// Ensure reads the rules back, and writes those that are not in force.
func (p Plan) Ensure() error {
	for _, c := range p.Changes {
		kept, err := p.Group.Rule(c.Device)
		if err != nil && !fault.IsUnsupported(err) {
			return fmt.Errorf("read back limits of %s: %w", p.Group.Dir(), err)
		}
		if err == nil && kept.Overlay(c.Limit) == kept {
			continue
		}
		if err := p.Group.SetRule(c.Device, c.Limit); err != nil {
			return err
		}
	}
	return nil
}
