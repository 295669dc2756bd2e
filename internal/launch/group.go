package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/state"
)

// recordKind names the records of groups that a running weir has made.
const recordKind = "run"

// Prefix begins the names of the groups and scopes that weir makes.
const Prefix = "weir-"

// Options say what group a command gets.
type Options struct {
	Name      string // of the group, without Prefix; empty for one that is made up
	Changes   []hold.Change
	MemoryMax uint64 // bytes; 0 for none
	Version   cgroupfs.Version
	Command   string // for people: what runs in it
	Linger    bool   // the group stays until what the command has left in memory is written
	// Then is what belongs to the limits, and is done when they are in force and the group
	// is locked still (see hold.Lock), such as to have the pacer hold it. nil: nothing.
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
	Path       string           `json:"path"`
	Linger     bool             `json:"linger,omitempty"` // see Options
	Began      moment           `json:"began,omitempty"`  // when it was made
	Until      moment           `json:"until,omitempty"`  // when its queue will be empty, once its weir knows
}

// nameMax leaves room for Prefix and systemd's ".scope" in a file name.
const nameMax = 200

// CheckName reports why a name cannot be that of a group and of a systemd scope.
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

// Plan lists what Prepare would do, for which group, and does nothing. The group's
// name is an example if the options have none, and its place if systemd chooses it.
func (h Host) Plan(o Options) (io cgroupfs.Group, steps []hold.Step, err error) {
	io, memory, err := h.groups(o)
	if err != nil {
		return io, nil, err
	}
	if h.scoped() {
		return io, h.scopePlan(o, io), nil
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

// Prepare makes the group and puts the rules into force. On an error, such as the end of
// the context, nothing is left.
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
		// A group that is there already must not get on record: it is not weir's.
		if exists, err := g.Exists(); err != nil {
			return nil, err
		} else if exists {
			return nil, fmt.Errorf("make cgroup %s: it is there already; choose another --name", g.Dir())
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
	p := place{Version: g.Hierarchy().Version, Path: g.Path()}
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

// removeWait bounds how long a group stays busy after its last process has gone:
// the kernel takes exiting tasks off it a moment after their parent has been told.
const removeWait = 2 * time.Second

// remove removes what was made. A group that still has processes is left, and its
// record with it: Sweep removes it when they are gone.
func (r *Room) remove() error {
	if r.keeper != nil {
		r.keeper.dismiss()
	}
	deadline := time.Now().Add(removeWait)
	for len(r.made) > 0 {
		g := r.made[len(r.made)-1]
		if r.queued > 0 {
			return r.stay()
		}
		if occupied(g) || r.linger && lingers(g, lingerMin) {
			return r.leave()
		}
		err := g.RemoveAll()
		switch {
		case err == nil || cgroupfs.IsGone(err):
			r.made = r.made[:len(r.made)-1]
		case !errors.Is(err, unix.EBUSY) || time.Now().After(deadline):
			return errors.Join(fmt.Errorf("remove cgroup: %w", err), r.leave())
		default:
			time.Sleep(time.Millisecond)
		}
	}
	if r.record == nil {
		return nil
	}
	return r.record.Done()
}

// occupied reports whether a process is in the group, or in a group that the command
// made below it. Then none of those is touched, the empty ones neither: they are the
// command's. (A threaded group does not list processes; it has some.)
func occupied(g cgroupfs.Group) bool {
	found := false
	err := g.Walk(func(below cgroupfs.Group) error {
		pids, err := below.Processes()
		found = found || len(pids) > 0 || errors.Is(err, unix.EOPNOTSUPP)
		if found {
			return nil
		}
		return err
	})
	return err == nil && found
}

func (r *Room) leave() error {
	if r.record == nil {
		return nil
	}
	return r.record.Leave()
}

// stay leaves the groups until what is queued in one has gone to the disk.
func (r *Room) stay() error {
	if r.record == nil {
		return nil
	}
	places := placesOf(r.made, r.linger)
	for i := range places {
		places[i].Until = now() + moment(emptyAfter(r.queued))
	}
	record, err := r.record.Replace(places)
	if err != nil {
		return errors.Join(err, r.leave())
	}
	r.record = record
	return r.leave()
}

// Join has the command, but none of weir's helpers, be born in another group as well, before
// the others; it is not the room's to remove. On v2, where a process is in one group, it is
// one below the room's.
func (r *Room) Join(cell cgroupfs.Group) { r.cell = &cell }

// groups are those that the command is born into.
func (r *Room) groups() []cgroupfs.Group {
	if r.cell == nil {
		return r.joined
	}
	others := slices.DeleteFunc(slices.Clone(r.joined), func(g cgroupfs.Group) bool {
		return g.Hierarchy() == r.cell.Hierarchy() && g.Hierarchy().Version == cgroupfs.V2
	})
	return slices.Insert(others, 0, *r.cell)
}

// Left is what remains of a room that is closed.
type Left int

// A group is left with processes of the command, or without them, because what it has
// written is in memory still, or queued. Sweep has to be called when that has ended.
const (
	LeftNothing Left = iota
	LeftProcesses
	LeftDirty
	LeftQueued
)

// Close removes the group, unless something of it is left.
func (r *Room) Close() (left Left, err error) {
	if r.keeper != nil {
		return r.closeScope()
	}
	err = r.remove()
	switch {
	case len(r.made) == 0:
		return LeftNothing, err
	case occupied(r.made[len(r.made)-1]):
		return LeftProcesses, err
	case r.queued > 0:
		return LeftQueued, err
	}
	return LeftDirty, err
}

// closeScope leaves the scope, which goes with its last process. Where it holds writeback,
// the keeper stays until that is done: also after processes that live on.
func (r *Room) closeScope() (left Left, err error) {
	if _, others := inside(r.IO, r.keeper.cmd.Process.Pid); others {
		left = LeftProcesses
	} else if r.linger && lingers(r.IO, lingerMin) {
		left = LeftDirty
	}
	if left != LeftNothing && r.linger && bindsWriteback(r.IO) {
		err, r.keeper = r.keeper.leave(), nil
		return left, err
	}
	if r.queued > 0 {
		if left == LeftNothing {
			left = LeftQueued
		}
		err, r.keeper = r.keeper.wait(emptyAfter(r.queued)), nil
		return left, err
	}
	return left, r.remove()
}

// Sweep removes the groups that dead weirs left, if nothing runs in them any more and
// nothing of theirs is in memory.
func Sweep(dir state.Dir, hierarchies *cgroupfs.FS) error { return sweep(dir, hierarchies, "") }

// sweep is Sweep that does not wait for what one group has in memory.
func sweep(dir state.Dir, hierarchies *cgroupfs.FS, wanted string) error {
	return dir.Sweep(recordKind, func(data []byte) error {
		var places []place
		if err := json.Unmarshal(data, &places); err != nil {
			return fmt.Errorf("read record of a group: %w", err)
		}
		for _, p := range places {
			if err := p.remove(hierarchies, p.Path == wanted); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p place) remove(hierarchies *cgroupfs.FS, atOnce bool) error {
	h := hierarchies.Unified()
	if p.Version == cgroupfs.V1 {
		h = hierarchies.With(p.Controller)
	}
	if h == nil {
		return nil
	}
	g, err := h.Group(p.Path)
	if err != nil {
		return err
	}
	if occupied(g) || !atOnce && (p.Linger && lingers(g, lingerEnd) || p.drains(g) > 0) {
		return state.ErrKeep
	}
	err = g.RemoveAll()
	switch {
	case errors.Is(err, unix.EBUSY):
		return state.ErrKeep
	case err != nil && !cgroupfs.IsGone(err):
		return fmt.Errorf("remove cgroup of a dead weir: %w", err)
	}
	return nil
}
