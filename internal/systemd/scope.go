package systemd

import (
	"context"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
)

// A Scope is a transient unit around processes that somebody else started.
type Scope struct {
	Name        string // with its suffix .scope
	Description string
	Slice       string    // that the scope is made in; empty for systemd's default
	PID         int       // the first process
	Settings    []Setting // limits that are in force before StartScope returns
}

// MemoryMax bounds a unit's memory in bytes, on v2.
func MemoryMax(bytes uint64) Setting { return Setting{"MemoryMax", dbus.MakeVariant(bytes)} }

// MemoryLimit is MemoryMax's name on v1.
func MemoryLimit(bytes uint64) Setting { return Setting{"MemoryLimit", dbus.MakeVariant(bytes)} }

// Accounting asks for a unit's own group in a controller's v1 hierarchy: "IO" or "Memory".
func Accounting(controller string) Setting {
	return Setting{controller + "Accounting", dbus.MakeVariant(true)}
}

// startTimeout bounds the wait for a scope's job. It is made of cgroup writes only.
const startTimeout = 20 * time.Second

// StartScope makes the scope and waits until it is active. It returns its cgroup's
// path. Dead processes collect the scope by themselves.
func (c *Conn) StartScope(ctx context.Context, s Scope) (cgroup string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	settings := append([]Setting{
		{"Description", dbus.MakeVariant(s.Description)},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(s.PID)})},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}, s.Settings...)
	if s.Slice != "" {
		settings = append(settings, Setting{"Slice", dbus.MakeVariant(s.Slice)})
	}
	type auxiliary struct {
		Name     string
		Settings []Setting
	}
	var job dbus.ObjectPath
	if err := c.call(ctx, manager, managerIf+".StartTransientUnit", s.Name, "fail", settings, []auxiliary{}).Store(&job); err != nil {
		return "", fmt.Errorf("start scope %s: %w", s.Name, err)
	}
	var object dbus.ObjectPath
	if err := c.call(ctx, manager, managerIf+".GetUnit", s.Name).Store(&object); err != nil {
		return "", fmt.Errorf("find scope %s: %w", s.Name, err)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		// The job is read first: a scope is inactive until its job has run, and one
		// that is inactive without a job has failed.
		var pending struct {
			ID   uint32
			Path dbus.ObjectPath
		}
		if err := c.property(ctx, object, unitIf, "Job", &pending); err != nil {
			return "", fmt.Errorf("start scope %s: %w", s.Name, err)
		}
		var active string
		if err := c.property(ctx, object, unitIf, "ActiveState", &active); err != nil {
			return "", fmt.Errorf("start scope %s: %w", s.Name, err)
		}
		switch {
		case active == "active":
			err := c.property(ctx, object, scopeIf, "ControlGroup", &cgroup)
			return cgroup, err
		case active == "failed", active == "inactive" && pending.ID == 0:
			return "", fmt.Errorf("start scope %s: systemd says it is %s", s.Name, active)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("start scope %s: still %s: %w", s.Name, active, ctx.Err())
		case <-time.After(wait):
		}
	}
}
