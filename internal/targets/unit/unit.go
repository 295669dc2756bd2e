// Package unit resolves targets of the kind unit:NAME: a systemd service, scope, slice, socket,
// mount or swap, by its name. A name without a suffix is a service. systemd says which group a
// unit has. If systemd cannot be asked, as below another root, the path of a group tells its
// unit.
package unit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// A Manager is what this package needs of systemd; *systemd.Conn implements it.
type Manager interface {
	Unit(ctx context.Context, name string) (systemd.Unit, error)
	Close() error
}

// Kind resolves unit:NAME within one hierarchy.
type Kind struct {
	Hierarchy   *cgroupfs.Hierarchy
	SystemdRuns bool
	Connect     func(context.Context) (Manager, error) // nil: systemd cannot be asked
}

// Name returns "unit".
func (Kind) Name() string { return "unit" }

// lookTimeout bounds how long systemd may take to answer: it may have to read the unit's files
// first.
const lookTimeout = 20 * time.Second

// A NoGroupError says that a unit is running but has no group of its own in the hierarchy: on
// cgroup v1 systemd makes one when a unit asks for accounting, or gets a setting.
type NoGroupError struct {
	Unit  string
	Mount string // of the hierarchy
	Slice string // that it is in
}

func (e *NoGroupError) Error() string {
	return fmt.Sprintf("unit:%s: it has no cgroup of its own in %s, so no limit; weir set %s makes a cgroup", e.Unit, e.Mount, cmdline.Quote("unit:"+e.Unit))
}

// Target spells the unit.
func (e *NoGroupError) Target() string { return "unit:" + e.Unit }

// Resolve finds the group of a running unit.
func (k Kind) Resolve(ctx context.Context, name string) (targets.Target, error) {
	full, err := systemd.FullName(name)
	var refused *systemd.NameError
	if errors.As(err, &refused) {
		return targets.Target{}, &targets.NameError{Err: refused}
	}
	if err != nil {
		return targets.Target{}, err
	}
	if !k.SystemdRuns {
		return targets.Target{}, &targets.NoKindError{Err: &fault.Unsupported{Feature: "unit:" + full, Reason: "systemd is not PID 1 of this host",
			Remedy: "name a process or a group, such as pid:4711 or cgroup:/batch"}}
	}
	if k.Connect == nil {
		return k.byPath(full)
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	conn, err := k.Connect(ctx)
	if err != nil {
		return targets.Target{}, fmt.Errorf("unit:%s: %w", full, err)
	}
	defer conn.Close()
	u, err := conn.Unit(ctx, full)
	if err != nil {
		return targets.Target{}, err
	}
	if err := whyNot(u, full); err != nil {
		return targets.Target{}, err
	}
	return k.found(u.Name, u.Cgroup)
}

// whyNot says why a unit has no group.
func whyNot(u systemd.Unit, asked string) error {
	e := &targets.NotFound{Target: "unit:" + asked}
	switch {
	case u.Cgroup != "":
		return nil
	case u.Load == "not-found":
		e.Why = "systemd knows no such unit; systemctl list-units shows all that it knows"
	case u.Load == "masked":
		e.Why = "it is masked, and cannot run; systemctl unmask " + cmdline.Quote(u.Name)
	case u.Load != "loaded":
		e.Why = fmt.Sprintf("systemd could not load it (%s): %s; systemctl status %s", u.Load, u.Error, cmdline.Quote(u.Name))
	case u.Active == "active":
		e.Why = "it is active, but has no process and no cgroup to limit"
	default:
		e.Why = fmt.Sprintf("it is not running (%s), so it has no cgroup to limit; systemctl start %s", u.Active, cmdline.Quote(u.Name))
	}
	return e
}

// found makes a target of a unit and the group that systemd reports.
func (k Kind) found(name, cgroup string) (targets.Target, error) {
	group, err := k.Hierarchy.Group(cgroup)
	if err != nil {
		return targets.Target{}, fmt.Errorf("unit:%s: %w", name, err)
	}
	exists, err := group.Exists()
	if err != nil {
		return targets.Target{}, fmt.Errorf("unit:%s: %w", name, err)
	}
	if !exists && k.Hierarchy.Version == cgroupfs.V1 {
		return targets.Target{}, &NoGroupError{Unit: name, Mount: k.Hierarchy.MountPoint, Slice: systemd.SliceOf(cgroup)}
	}
	if !exists {
		return targets.Target{}, &targets.NotFound{Target: "unit:" + name, Why: fmt.Sprintf("systemd says its cgroup is %s, but %s has no such group; try again if the unit is just stopping", cgroup, k.Hierarchy.MountPoint)}
	}
	owner := targets.OwnerOf(group, true)
	if owner.Unit != name && !group.IsRoot() { // (-.slice has the kernel's own group)
		owner = targets.Owner{Kind: "systemd", Name: name, Unit: name}
	}
	return targets.Target{Kind: "unit", Name: name, Group: group, Owner: owner}, nil
}

// byPath finds a unit's group by its place in the tree.
func (k Kind) byPath(name string) (targets.Target, error) {
	var found *cgroupfs.Group
	err := k.Hierarchy.Root().Explore(func(g cgroupfs.Group) error {
		if unit, ok := systemd.UnitOfPath(g.Path()); ok && unit == name && !g.IsRoot() {
			found = &g
		}
		return nil
	}, func(cgroupfs.Group, error) {}) // what cannot be read is no unit's that can be limited
	if err != nil {
		return targets.Target{}, err
	}
	if found == nil {
		return targets.Target{}, &targets.NotFound{Target: "unit:" + name, Why: "no group in " + k.Hierarchy.MountPoint + " belongs to this unit"}
	}
	return k.found(name, found.Path())
}
