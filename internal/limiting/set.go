package limiting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/unit"
)

// A Request asks for limits.
type Request struct {
	Target string
	// Asked are the limits; their own Hold is not looked at. Unset rates stay as they are;
	// unlimited ones are removed.
	Asked []limit.Asked
	// Hold is what is to hold buffered writes. Empty: limit.HoldAuto, which is not saved with the
	// limits and may change from one version of weir to the next.
	Hold    limit.Hold
	Keep    bool // what is in force in a group that weir writes to is not written again
	Whole   bool // a group that other processes are in too, or v1's root group, may be limited
	Persist bool // the limits are to last over restarts
	// Foreign has Apply look for files of other groups that the target writes to. That takes part
	// of a second.
	Foreign bool
}

// A setting is a prepared set.
type setting struct {
	m        Manager
	request  Request
	restored bool               // it is on record already
	none     *unit.NoGroupError // systemd has to make a group first; nil: there is one
	target   targets.Target     // without a group, if there is none yet
	asked    []limit.Asked      // on the target's own disks
	places   []place.Placed
	notes    []note.Note
}

// PrepareSet finds a request's target and devices, and refuses what cannot be done. It changes
// nothing.
func (m Manager) PrepareSet(ctx context.Context, r Request) (Change, error) {
	if len(r.Asked) == 0 {
		return nil, fault.Misusef("set %s: no limit is named", r.Target)
	}
	t, err := m.Host.Target(ctx, r.Target)
	s := &setting{m: m, request: r}
	if errors.As(err, &s.none) {
		return s, s.prepareUnit(ctx)
	}
	if err != nil {
		return nil, err
	}
	return s, s.prepare(ctx, t)
}

// PrepareSetOn is PrepareSet for a target that was found before. The request's own name of it does
// not count.
func (m Manager) PrepareSetOn(ctx context.Context, t targets.Target, r Request) (Change, error) {
	if len(r.Asked) == 0 {
		return nil, fault.Misusef("set %s: no limit is named", t)
	}
	s := &setting{m: m, request: r}
	return s, s.prepare(ctx, t)
}

// prepare checks a request for a target that has a group.
func (s *setting) prepare(ctx context.Context, t targets.Target) error {
	r := s.request
	if err := Alone(t, r.Whole); err != nil {
		return err
	}
	if r.Hold != "" && r.Hold != limit.HoldKernel {
		t = keep.WithoutEngine(t)
	}
	if t.Group.IsRoot() && t.Group.Hierarchy().Version == cgroupfs.V1 && !r.Whole {
		return fault.With(fmt.Errorf("set %s: on cgroup v1 a limit of the root group applies to all processes without another limit, and to all writeback of this host", t), fault.Remedy{Do: fault.LimitRoot})
	}
	s.target, s.none = t, nil
	if r.Persist {
		if err := s.keeper().May(ctx); err != nil {
			return err
		}
	}
	asked, notes, err := place.OwnDisks(ctx, s.m.Host.Devices(), r.Asked, t)
	s.notes = append(s.notes, notes...)
	if err != nil {
		return &notedError{err, s.notes}
	}
	s.asked = asked
	s.places, err = s.place(ctx, asked, t.Views())
	return err
}

// place finds the devices of limits, as some processes see them; 0 is weir itself.
func (s *setting) place(ctx context.Context, asked []limit.Asked, views []int) ([]place.Placed, error) {
	all, skipped, err := place.Place(ctx, s.m.Host.Devices(), asked, views)
	for _, k := range skipped {
		s.notes = append(s.notes, note.Noticef("no-limit", "no limit on %s: %s", plain.Brief(k.Mount.Point), k.Reason))
	}
	if err != nil {
		return nil, &notedError{err, s.notes}
	}
	return all, nil
}

func (s *setting) keeper() keep.Keeper { return keep.Of(s.m.Host, s.target, s.version()) }

func (s *setting) version() cgroupfs.Version {
	if s.none != nil {
		return cgroupfs.V1
	}
	return s.target.Group.Hierarchy().Version
}

// prepareUnit checks a request for a unit that has no group of its own, as happens on cgroup v1.
func (s *setting) prepareUnit(ctx context.Context) error {
	name := s.none.Unit
	s.target = targets.Target{Kind: "unit", Name: name, Owner: targets.Owner{Kind: "systemd", Name: name, Unit: name}}
	if s.request.Persist {
		if err := s.keeper().May(ctx); err != nil {
			return err
		}
	}
	_, _, err := place.Place(ctx, s.m.Host.Devices(), s.request.Asked, []int{0}) // Apply notes what that skips
	return err
}

// giveGroup makes systemd make a group for the unit.
func (s *setting) giveGroup(ctx context.Context) error {
	none := s.none
	io, err := s.m.Host.IO()
	if err != nil {
		return err
	}
	if err := s.m.Host.Holder().Account(ctx, io, none.Unit, cmp.Or(none.Slice, systemd.RootSlice)); err != nil {
		return err
	}
	s.notes = append(s.notes, note.Infof("gave-group", "systemd: set BlockIOAccounting=yes of %s, which gives it a cgroup of its own in %s", none.Unit, none.Mount))
	t, err := s.m.Host.Target(ctx, s.target.String())
	if err != nil {
		return err
	}
	return s.prepare(ctx, t)
}

// A notedError is an error with what was noted before it.
type notedError struct {
	error
	notes []note.Note
}

func (e *notedError) Unwrap() error { return e.error }

// NotesOf returns what was noted before an error of this package.
func NotesOf(err error) []note.Note {
	var noted *notedError
	if errors.As(err, &noted) {
		return noted.notes
	}
	return nil
}

// Alone refuses a process whose group other processes are in, unless whole says that all of them
// are meant.
func Alone(t targets.Target, whole bool) error {
	if t.PID == 0 || whole {
		return nil
	}
	members, err := targets.Members(t.Group)
	if err != nil {
		return err
	}
	if !slices.Contains(members, t.PID) {
		t.PID = leaderOf(t.PID)
	}
	others := len(slices.DeleteFunc(members, func(pid int) bool { return pid == t.PID }))
	if others == 0 {
		return nil
	}
	with := "1 other process"
	if others > 1 {
		with = fmt.Sprintf("%d other processes", others)
	}
	return fault.With(fmt.Errorf("%s is in cgroup %s with %s, and a limit applies to the whole group", t, t.Group.Path(), with), fault.Remedy{Do: fault.LimitAll})
}
