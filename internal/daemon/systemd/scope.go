package systemd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godbus/dbus/v5"
)

// A Scope is a transient unit around processes that another program started.
type Scope struct {
	Name        string // with its suffix .scope
	Description string
	Slice       string    // that the scope is made in; empty for systemd's default
	PID         int       // the first process
	Settings    []Setting // limits that are in force before StartScope returns
}

// MemoryMax limits a unit's memory in bytes, on v2.
func MemoryMax(bytes uint64) Setting { return Setting{"MemoryMax", dbus.MakeVariant(bytes)} }

// MemoryLimit is MemoryMax for v1.
func MemoryLimit(bytes uint64) Setting { return Setting{"MemoryLimit", dbus.MakeVariant(bytes)} }

// Accounting asks for a unit's own group in a controller's v1 hierarchy: "IO" or "Memory".
func Accounting(controller string) Setting {
	return Setting{controller + "Accounting", dbus.MakeVariant(true)}
}

// outlivesOOM makes systemd leave a scope running in which the kernel has OOM-killed a process.
// Otherwise systemd would end all other processes, and with the group the count of killed
// processes would be gone.
var outlivesOOM = Setting{"OOMPolicy", dbus.MakeVariant("continue")}

// startTimeout bounds the wait for a unit's job, which consists of cgroup writes only.
const startTimeout = 20 * time.Second

// StartScope makes the scope and waits until it is active. It returns its cgroup's path.
// systemd removes the scope by itself when its processes have ended.
func (c *Conn) StartScope(ctx context.Context, s Scope) (cgroup string, err error) {
	settings := append([]Setting{
		{"Description", dbus.MakeVariant(s.Description)},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(s.PID)})},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}, s.Settings...)
	if s.Slice != "" {
		settings = append(settings, Setting{"Slice", dbus.MakeVariant(s.Slice)})
	}
	object, err := c.startTransient(ctx, s.Name, append(settings, outlivesOOM))
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == "org.freedesktop.DBus.Error.PropertyReadOnly" {
		object, err = c.startTransient(ctx, s.Name, settings) // before 253, which leaves it alone
	}
	if err != nil {
		return "", err
	}
	err = c.property(ctx, object, scopeIf, "ControlGroup", &cgroup)
	return cgroup, err
}

// startTransient makes a unit and waits until it is active.
func (c *Conn) startTransient(ctx context.Context, name string, settings []Setting) (object dbus.ObjectPath, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := check(name, settings); err != nil {
		return "", err
	}
	type auxiliary struct {
		Name     string
		Settings []Setting
	}
	var job dbus.ObjectPath
	if err := c.call(ctx, manager, managerIf+".StartTransientUnit", name, "fail", settings, []auxiliary{}).Store(&job); err != nil {
		return "", fmt.Errorf("start %s: %w", name, err)
	}
	if err := c.call(ctx, manager, managerIf+".GetUnit", name).Store(&object); err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		// The job is read first: a unit is inactive until its job has run, and a unit that is
		// inactive without a job has failed.
		var pending struct {
			ID   uint32
			Path dbus.ObjectPath
		}
		if err := c.property(ctx, object, unitIf, "Job", &pending); err != nil {
			return "", fmt.Errorf("start %s: %w", name, err)
		}
		var active string
		if err := c.property(ctx, object, unitIf, "ActiveState", &active); err != nil {
			return "", fmt.Errorf("start %s: %w", name, err)
		}
		switch {
		case active == "active":
			return object, nil
		case active == "failed", active == "inactive" && pending.ID == 0:
			return "", fmt.Errorf("start %s: systemd says it is %s", name, active)
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("start %s: still %s: %w", name, active, ctx.Err())
		case <-time.After(wait):
		}
	}
}
