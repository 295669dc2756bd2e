package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// recordKind is the kind of records of groups that a running weir has made.
const recordKind = "run"

// Prefix is the beginning of the names of weir's groups and scopes.
const Prefix = "weir-"

// Options say what group a command gets.
type Options struct {
	Name      string // of the group, without Prefix; empty for one that is made up
	Changes   []hold.Change
	MemoryMax uint64 // bytes; 0 for none
	Version   cgroupfs.Version
	Command   string // for people: what runs in it
	Linger    bool   // the group stays until what the command has left in memory is written
	// Then is done when the limits are in force and the group is still locked (see hold.Lock),
	// for example to have the pacer hold it. nil: nothing.
	Then func(*Room) error
}

func (o Options) then(r *Room) error {
	if o.Then == nil {
		return nil
	}
	return o.Then(r)
}

// A Host is what launch needs to know of the machine.
type Host struct {
	FS          *cgroupfs.FS
	State       state.Dir
	Holder      hold.Holder
	SystemdRuns bool
}

// A Room is a group, or one in each of several hierarchies, made and limited for one
// command.
type Room struct {
	IO     cgroupfs.Group   // the group whose rules bind the command
	joined []cgroupfs.Group // all groups that the command is born into
	cell   *cgroupfs.Group  // see Join; nil: none
	pauses *cgroupfs.Group  // in which the pacer pauses its processes; nil: it does not
	made   []cgroupfs.Group // those that weir made and removes
	record *state.Record
	keeper *keeper // of a systemd scope; nil without

	limited bool          // it has rules, and so counters worth reading
	linger  bool          // see Options
	queued  time.Duration // what the throttle needs for the command's writes (v1)
}

// A place is a group as a record names it.
type place struct {
	Controller string           `json:"controller"`
	Version    cgroupfs.Version `json:"version"`
	Path       rawtext.Text     `json:"path"`
	Linger     bool             `json:"linger,omitempty"` // see Options
	Began      moment           `json:"began,omitempty"`  // when it was made
	Until      moment           `json:"until,omitempty"`  // when its queue will be empty, once its weir knows
}

// nameMax leaves room for Prefix and systemd's ".scope" in a file name.
const nameMax = 200

// CheckName reports why a name cannot be the name of a group and of a systemd scope.
func CheckName(name string) error {
	odd := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		digit := r >= '0' && r <= '9'
		return !letter && !digit && !strings.ContainsRune("._:-", r)
	}
	if len(name) > nameMax || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("%q: a group's name has at most %d of a-z, A-Z, 0-9 and . _ : -", name, nameMax)
	}
	return nil
}

func name(o Options) string {
	if o.Name != "" {
		return Prefix + o.Name
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: it panics instead
	return Prefix + hex.EncodeToString(b[:])
}

// Plan lists what Prepare would do, and for which group, without doing it. The group's name is
// an example if the options have none.
func (h Host) Plan(o Options) (io cgroupfs.Group, steps []hold.Step, err error) {
	if h.scoped() {
		return h.scopePlan(o)
	}
	io, memory, err := h.groups(o)
	if err != nil {
		return io, nil, err
	}
	made := []cgroupfs.Group{io}
	if memory != nil {
		made = append(made, *memory)
	}
	for _, g := range made {
		steps = append(steps, hold.Step{Mkdir: g.Dir()})
		missing, err := g.Missing(controllersOf(g.Hierarchy())...)
		if err != nil {
			return io, nil, err
		}
		for _, w := range missing {
			steps = append(steps, hold.Step{File: w.File, Line: w.Line})
		}
	}
	if o.MemoryMax > 0 {
		w := made[len(made)-1].MemoryWrite(o.MemoryMax)
		steps = append(steps, hold.Step{File: w.File, Line: w.Line})
	}
	return io, append(steps, hold.Plan{Group: io, Changes: o.Changes}.Steps()...), nil
}

// Prepare makes the group and puts the rules into force. On an error, such as the end of the
// context, it leaves nothing behind.
func (h Host) Prepare(ctx context.Context, o Options) (*Room, error) {
	if h.scoped() {
		return h.prepareScope(ctx, o)
	}
	io, memory, err := h.groups(o)
	if err != nil {
		return nil, err
	}
	room := &Room{IO: io, joined: []cgroupfs.Group{io}, limited: len(o.Changes) > 0, linger: o.Linger}
	if memory != nil {
		room.joined = append(room.joined, *memory)
	}
	for _, g := range room.joined {
		if err := g.MayMake(); err != nil {
			return nil, err
		}
		if err := h.offered(g); err != nil {
			return nil, err
		}
	}
	locked, err := h.Holder.Lock(ctx, io)
	if err != nil {
		return nil, err
	}
	defer locked.Unlock()
	for _, g := range room.joined {
		if err := h.vacate(ctx, g); err != nil {
			return nil, err
		}
		// A group that exists already must not get on record: it does not belong to weir.
		if exists, err := g.Exists(); err != nil {
			return nil, err
		} else if exists {
			return nil, fault.With(fmt.Errorf("make cgroup %s: it exists already", g.Dir()), fault.Remedy{Do: fault.OtherName})
		}
	}
	if room.record, err = h.State.New(recordKind, placesOf(room.joined, o.Linger)); err != nil {
		return nil, err
	}
	if err := room.furnish(ctx, locked, o); err != nil {
		return nil, errors.Join(err, room.remove())
	}
	return room, nil
}

func placesOf(groups []cgroupfs.Group, linger bool) []place {
	var places []place
	for _, g := range groups {
		p := placeOf(g)
		p.Linger, p.Began = linger, now()
		places = append(places, p)
	}
	return places
}

func placeOf(g cgroupfs.Group) place {
	p := place{Version: g.Hierarchy().Version, Path: rawtext.Text(g.Path())}
	if p.Version == cgroupfs.V1 {
		p.Controller = g.Hierarchy().Controllers[0]
		for _, c := range []string{"blkio", "memory"} {
			if g.Hierarchy().Has(c) {
				p.Controller = c
			}
		}
	}
	return p
}

func (r *Room) furnish(ctx context.Context, locked hold.Locked, o Options) error {
	for _, g := range r.joined {
		if err := g.Create(); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		r.made = append(r.made, g)
		if err := g.Enable(controllersOf(g.Hierarchy())...); err != nil {
			return err
		}
	}
	if o.MemoryMax > 0 {
		if err := r.joined[len(r.joined)-1].SetMemoryMax(o.MemoryMax); err != nil {
			return err
		}
	}
	if err := locked.Apply(ctx, hold.Plan{Group: r.IO, Changes: o.Changes}); err != nil {
		return err
	}
	return o.then(r)
}

// Join makes the command, but not weir's helpers, start in another group as well, before the
// others. The room does not remove that group. On v2, where a process is in one group, it is a
// group below the room's.
func (r *Room) Join(cell cgroupfs.Group) { r.cell, r.pauses = &cell, &cell }

// groups returns the groups that the command starts in.
func (r *Room) groups() []cgroupfs.Group {
	if r.cell == nil {
		return r.joined
	}
	others := slices.DeleteFunc(slices.Clone(r.joined), func(g cgroupfs.Group) bool {
		return g.Hierarchy() == r.cell.Hierarchy() && g.Hierarchy().Version == cgroupfs.V2
	})
	return slices.Insert(others, 0, *r.cell)
}
