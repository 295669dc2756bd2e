package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

func scopeName(o Options) string { return name(o) + ".scope" }

// settings are the scope's properties. weir writes the rules of devices that systemd goes past: see Host.past.
func (o Options) settings(v cgroupfs.Version, past []hold.Change) []systemd.Setting {
	settings := []systemd.Setting{systemd.Accounting("IO"), systemd.Accounting("Memory")}
	if v == cgroupfs.V1 {
		settings[0] = systemd.Accounting("BlockIO")
		if o.MemoryMax > 0 {
			settings = append(settings, systemd.MemoryLimit(o.MemoryMax))
		}
		return settings // v1's rules are weir's to write: systemd has none for operations
	}
	if o.MemoryMax > 0 {
		settings = append(settings, systemd.MemoryMax(o.MemoryMax))
	}
	for _, c := range o.Changes {
		if !slices.Contains(past, c) {
			settings = append(settings, systemd.IOLimit(c.Device, c.Limit)...)
		}
	}
	return settings
}

// past are the changes on devices for which systemd would limit another one, with every other volume on it.
func (h Host) past(ctx context.Context, changes []hold.Change) (past []hold.Change) {
	for _, c := range changes {
		if systemd.GoesPast(ctx, h.FS.Root(), c.Device) {
			past = append(past, c)
		}
	}
	return past
}

// scopePlan is Plan where systemd makes the group.
func (h Host) scopePlan(o Options) (io cgroupfs.Group, steps []hold.Step, err error) {
	hierarchy, err := h.FS.IO(o.Version)
	if err != nil {
		return io, nil, err
	}
	memory := h.FS.With("memory")
	if o.MemoryMax > 0 && memory == nil {
		return io, nil, noMemory()
	}
	unit := scopeName(o)
	slice, err := h.ownSlice(hierarchy)
	if err != nil {
		return io, nil, err
	}
	if io, err = scopeGroup(hierarchy, slice, unit); err != nil {
		return io, nil, err
	}
	if hierarchy.Version == cgroupfs.V1 {
		steps = hold.AnchorSteps(hierarchy, slice)
	}
	past := h.past(context.Background(), o.Changes)
	for _, s := range o.settings(hierarchy.Version, past) {
		steps = append(steps, hold.Step{Unit: unit, Property: s.String()})
	}
	if hierarchy.Version != cgroupfs.V1 {
		return io, append(steps, hold.Plan{Group: io, Changes: past}.Steps()...), nil
	}
	if o.MemoryMax > 0 && memory.Version == cgroupfs.V2 { // see joinKeeper
		g, err := scopeGroup(memory, slice, unit)
		if err != nil {
			return io, nil, err
		}
		writes, err := g.Missing("memory")
		if err != nil {
			return io, nil, err
		}
		for _, w := range append(writes, g.MemoryWrite(o.MemoryMax)) {
			steps = append(steps, hold.Step{File: w.File, Line: w.Line})
		}
	}
	return io, append(steps, hold.Plan{Group: io, Changes: o.Changes}.Steps()...), nil
}

// scopeGroup is the group that systemd makes for a scope.
func scopeGroup(hierarchy *cgroupfs.Hierarchy, slice, unit string) (cgroupfs.Group, error) {
	return hierarchy.Group(path.Join(systemd.SlicePath(slice), unit))
}

// prepareScope makes systemd make a scope around a keeper. The command joins every group that
// the keeper is in.
func (h Host) prepareScope(ctx context.Context, o Options) (*Room, error) {
	hierarchy, err := h.FS.IO(o.Version)
	if err != nil {
		return nil, err
	}
	if err := hierarchy.Writable(); err != nil {
		return nil, err
	}
	if o.MemoryMax > 0 && h.FS.With("memory") == nil {
		return nil, noMemory() // systemd takes the setting, and says nothing
	}
	slice, err := h.ownSlice(hierarchy)
	if err != nil {
		return nil, err
	}
	if hierarchy.Version == cgroupfs.V1 {
		if err := h.Holder.Anchor(ctx, hierarchy, slice); err != nil {
			return nil, err
		}
	}
	conn, err := h.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	unit := scopeName(o)
	place, err := scopeGroup(hierarchy, slice, unit)
	if err != nil {
		return nil, err
	}
	locked, err := h.Holder.Lock(ctx, place)
	if err != nil {
		return nil, err
	}
	defer locked.Unlock()
	if err := h.vacate(ctx, place); err != nil {
		return nil, err
	}
	k, err := newKeeper(unit)
	if err != nil {
		return nil, err
	}
	settings := o.settings(hierarchy.Version, h.past(ctx, o.Changes))
	room := &Room{keeper: k, limited: len(o.Changes) > 0, linger: o.Linger}
	if _, err := conn.StartScope(ctx, systemd.Scope{
		Name: unit, Slice: slice, Description: plain.Described("weir run " + o.Command), PID: k.cmd.Process.Pid, Settings: settings,
	}); err != nil {
		if ctx.Err() != nil {
			room.keeper = nil
			return nil, errors.Join(context.Cause(ctx), k.abandon(), room.remove())
		}
		return nil, errors.Join(err, room.remove())
	}
	if err := room.joinKeeper(h, hierarchy, unit, o); err != nil {
		return nil, errors.Join(err, room.remove())
	}
	return room, nil
}

// connect connects to systemd; its error is the cause if the context has ended.
func (h Host) connect(ctx context.Context) (*systemd.Conn, error) {
	conn, err := h.Holder.Connect(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return conn, err
}

// ownSlice returns the slice that weir itself runs in, or systemd's default for new units: on v2
// limits on it apply to the command too. On v1 the hierarchy named systemd knows.
func (h Host) ownSlice(io *cgroupfs.Hierarchy) (string, error) {
	from := io
	if named := h.FS.With("name=systemd"); io.Version == cgroupfs.V1 && named != nil {
		from = named
	}
	own, err := h.FS.OfProcess(from, 0)
	if err != nil {
		return "", err
	}
	return cmp.Or(systemd.SliceOf(own.Path()), systemd.SystemSlice), nil
}

func (r *Room) joinKeeper(h Host, hierarchy *cgroupfs.Hierarchy, unit string, o Options) (err error) {
	pid := r.keeper.cmd.Process.Pid
	if r.IO, err = h.FS.OfProcess(hierarchy, pid); err != nil {
		return err
	}
	if path.Base(r.IO.Path()) != unit {
		return fmt.Errorf("make scope: systemd made no group for it in %s (it is in %s)", hierarchy.MountPoint, r.IO.Path())
	}
	for _, each := range h.FS.Hierarchies() {
		theirs, err := h.FS.OfProcess(each, pid)
		if err != nil {
			return err
		}
		ours, err := h.FS.OfProcess(each, os.Getpid())
		if err != nil {
			return err
		}
		if theirs.Path() != ours.Path() {
			r.joined = append(r.joined, theirs)
		}
	}
	if memory := h.FS.With("memory"); o.MemoryMax > 0 && hierarchy.Version == cgroupfs.V1 && memory.Version == cgroupfs.V2 {
		// On a hybrid host systemd manages only v1's controllers.
		g, err := h.FS.OfProcess(memory, pid)
		if err != nil {
			return err
		}
		if err := errors.Join(g.Enable("memory"), g.SetMemoryMax(o.MemoryMax)); err != nil {
			return err
		}
	}
	if err := (hold.Plan{Group: r.IO, Changes: o.Changes}).Ensure(); err != nil {
		return err
	}
	return o.then(r)
}
