package keep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/vm"
)

// A Left is what is kept for a target that is not running, and so has no group.
type Left struct {
	Target  string // as a user spells it
	Owner   targets.Owner
	Actions []Action // have nothing kept for it any more
	// Unwritable is the answer where the hierarchy of limits cannot be written; nil: that is no
	// hindrance, or it is the answer itself.
	Unwritable error
	Writes     bool // the hierarchy has to be writable
}

// OfStopped finds what is kept for the unit, container or domain of a name that could not be
// resolved, with the error found. If it is none of these, or nothing is kept for it, the error is
// found.
func OfStopped(ctx context.Context, h *host.Host, spec string, found error) (Left, error) {
	var stopped *targets.StoppedError
	if errors.As(found, &stopped) {
		return ofContainer(h, spec, stopped)
	}
	if left, is, err := ofGone(h, spec, found); is || err != nil {
		return left, err
	}
	var notFound *targets.NotFound
	if !errors.As(found, &notFound) || !h.IsOwn() { // a copy's libvirt and systemd cannot be asked
		return Left{}, found
	}
	if name, is := strings.CutPrefix(spec, "vm:"); is {
		return ofDomain(ctx, h, name, found)
	}
	if name, is := strings.CutPrefix(spec, "unit:"); is && h.SystemdRuns() {
		return ofUnit(ctx, h, name, found)
	}
	return Left{}, found
}

// ofContainer finds weir's record of a container, the drop-in of a scope that systemd will make
// for it, and what its engine keeps.
func ofContainer(h *host.Host, spec string, stopped *targets.StoppedError) (Left, error) {
	kind, _, _ := strings.Cut(spec, ":")
	left := Left{Target: spec, Owner: targets.Owner{Kind: kind}, Writes: true}
	r, lost, err := read(h, stopped.Lasting)
	if err != nil {
		return left, err
	}
	var files []hold.File
	if stopped.Unit != "" {
		path := filepath.Join(h.Root, dropin.Path(stopped.Unit))
		entries, err := readDropIn(path)
		if err != nil {
			return left, err
		}
		if entries != nil {
			files = append(files, hold.File{Path: path})
		}
	}
	if len(r.Entries) > 0 || lost != nil {
		files = append(files, hold.File{Path: RecordPath(h, stopped.Lasting), Own: true})
	}
	left.Actions, err = engineForgets(h, stopped.Lasting, stopped.Record, nil)
	if err != nil {
		return left, err
	}
	if left.Actions = append(left.Actions, removes(h, files, note.Note{})...); left.Actions == nil {
		return left, stopped
	}
	return left, nil
}

// ofGone finds the record of a container that its owner knows no more, or whose owner is gone, by
// the name that it had.
func ofGone(h *host.Host, spec string, found error) (left Left, is bool, err error) {
	var notFound *targets.NotFound
	var noKind *targets.NoKindError
	if !errors.As(found, &notFound) && !errors.As(found, &noKind) {
		return left, false, nil
	}
	all, err := ListSaved(h.Root)
	var its []string
	for _, r := range all {
		if r.Target == spec || r.Name == spec {
			its = append(its, r.Target)
		}
	}
	switch {
	case len(its) == 0:
		return left, false, nil // and what another's record is like is not asked for
	case len(its) > 1:
		return left, false, fmt.Errorf("clear %s: limits of several targets are saved under that name; name one of %s", spec, strings.Join(its, ", "))
	case err != nil && !state.IsDamaged(err): // a damaged record is another's
		return left, false, err
	}
	kind, _, _ := strings.Cut(spec, ":")
	files := []hold.File{{Path: RecordPath(h, its[0]), Own: true}}
	return Left{Target: spec, Owner: targets.Owner{Kind: kind}, Actions: removes(h, files, note.Note{}), Writes: true, Unwritable: found}, true, nil
}

// ofDomain finds what libvirt keeps for a domain.
func ofDomain(ctx context.Context, h *host.Host, name string, found error) (Left, error) {
	forget := forgetConfigs{found: found}
	for _, config := range vm.Configs(name) {
		lifted, err := liftsOf(ctx, h, config, nil) // of one of them libvirt knows nothing
		if err == nil && len(lifted) > 0 {
			forget.configs, forget.lifted = append(forget.configs, config), append(forget.lifted, lifted)
		}
	}
	if len(forget.configs) == 0 {
		return Left{}, found
	}
	return Left{Target: "vm:" + name, Owner: targets.Owner{Kind: "libvirt", Name: name}, Actions: []Action{forget}}, nil
}

// forgetConfigs has libvirt keep no limits in configurations of one name. If that cannot be done
// for any, the error is the one by which the domain was not found.
type forgetConfigs struct {
	configs []vm.Config
	lifted  []map[string]limit.Limit // of each
	found   error
}

func (a forgetConfigs) Steps(context.Context) (steps []hold.Step, err error) {
	for i, config := range a.configs {
		if more, err := domainSteps(config, a.lifted[i]); err == nil {
			steps = append(steps, more...)
		}
	}
	if len(steps) == 0 {
		return nil, a.found
	}
	return steps, nil
}

func (a forgetConfigs) Do(ctx context.Context) (Done, error) {
	err := a.found
	for i, config := range a.configs {
		if config.Keep(ctx, a.lifted[i]) == nil {
			err = nil
		}
	}
	return Done{}, err
}

// ofUnit finds the settings and the drop-in of a unit.
func ofUnit(ctx context.Context, h *host.Host, name string, found error) (Left, error) {
	full, err := systemd.FullName(name)
	if err != nil {
		return Left{}, found
	}
	conn, err := h.Systemd(ctx)
	if err != nil {
		return Left{}, found
	}
	defer conn.Close()
	u, err := conn.Unit(ctx, full)
	if err != nil || u.Load != "loaded" || u.Cgroup != "" {
		return Left{}, found
	}
	io, err := h.IO()
	if err != nil {
		return Left{}, err
	}
	if err := io.Writable(); err != nil {
		return Left{}, err
	}
	settings, err := systemd.DropIns(h.Root, u.Name)
	if err != nil {
		return Left{}, err
	}
	path := filepath.Join(h.Root, dropin.Path(u.Name))
	entries, err := readDropIn(path)
	if err != nil {
		return Left{}, err
	}
	if len(settings) == 0 && entries == nil {
		return Left{}, found
	}
	left := Left{Target: "unit:" + u.Name, Owner: targets.Owner{Kind: "systemd", Name: u.Name}}
	if len(settings) > 0 {
		lift := liftUnit{h: h, name: u.Name}
		for _, d := range settings {
			lift.files = append(lift.files, d.Path)
		}
		left.Actions = append(left.Actions, lift)
	}
	if entries != nil {
		left.Actions = append(left.Actions, removes(h, []hold.File{{Path: path}}, note.Note{})...)
	}
	left.Actions = append(left.Actions, forgetPace{h, u.Name})
	return left, nil
}

// liftUnit has systemd lift the limits that it keeps for a unit that does not run.
type liftUnit struct {
	h     *host.Host
	name  string
	files []string // that systemd keeps them in
}

func (a liftUnit) Steps(context.Context) (steps []hold.Step, err error) {
	for _, file := range a.files {
		steps = append(steps, hold.Step{File: file})
	}
	return steps, nil
}

func (a liftUnit) Do(ctx context.Context) (Done, error) {
	conn, err := a.h.Systemd(ctx)
	if err != nil {
		return Done{}, err
	}
	defer conn.Close()
	return Done{}, conn.Lift(ctx, a.name)
}

// forgetPace has the pacer wait no longer for the next group of a unit.
type forgetPace struct {
	h    *host.Host
	unit string
}

func (forgetPace) Steps(context.Context) ([]hold.Step, error) { return nil, nil }
func (a forgetPace) Do(context.Context) (Done, error)         { return Done{}, a.h.Pacer().Forget(a.unit) }
