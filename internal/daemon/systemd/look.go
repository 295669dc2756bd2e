package systemd

import (
	"context"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// A Unit is what systemd reports about a unit (org.freedesktop.systemd1(5), "Unit Objects").
type Unit struct {
	Name   string // its own: the one that was asked for can be an alias
	Load   string // LoadState: "loaded", "not-found", "masked", "bad-setting", "error"
	Error  string // why it is not loaded, as systemd puts it; may be empty
	Active string // ActiveState: "active", "activating", "inactive", "failed"
	Cgroup string // as /proc/PID/cgroup spells it; empty while nothing of the unit runs
	// Transient: a program such as systemd-run made the unit, not a file that survives a boot.
	// Its settings are not kept over a boot either (systemd's unit_drop_in_dir).
	Transient bool

	object dbus.ObjectPath
}

// Unit looks a unit up by its full name. A unit that does not exist is no error: its Load says
// so.
func (c *Conn) Unit(ctx context.Context, name string) (Unit, error) {
	var object dbus.ObjectPath
	if err := c.call(ctx, manager, managerIf+".LoadUnit", name).Store(&object); err != nil {
		return Unit{}, fmt.Errorf("look up unit %s: %w", name, explain(err))
	}
	u := Unit{object: object}
	for property, into := range map[string]*string{"Id": &u.Name, "LoadState": &u.Load, "ActiveState": &u.Active} {
		if err := c.property(ctx, object, unitIf, property, into); err != nil {
			return Unit{}, fmt.Errorf("look up unit %s: %w", name, err)
		}
	}
	if err := c.property(ctx, object, unitIf, "Transient", &u.Transient); err != nil {
		return Unit{}, fmt.Errorf("look up unit %s: %w", name, err)
	}
	var refused struct{ Name, Message string }
	if err := c.property(ctx, object, unitIf, "LoadError", &refused); err == nil { // (old systemds lack it)
		u.Error = refused.Message
	}
	if err := c.property(ctx, object, interfaceOf(u.Name), "ControlGroup", &u.Cgroup); err != nil {
		return Unit{}, fmt.Errorf("look up unit %s: %w", name, err)
	}
	return u, nil
}

// LiveUnits names the units that have processes and whose names begin with prefix, sorted by
// systemd. It takes one call.
func (c *Conn) LiveUnits(ctx context.Context, prefix string) ([]string, error) {
	var patterns []string
	for _, s := range suffixes {
		patterns = append(patterns, globQuote(prefix)+"*"+s)
	}
	var units []struct {
		Name, Description, Load, Active, Sub, Following string
		Object                                          dbus.ObjectPath
		JobID                                           uint32
		JobType                                         string
		Job                                             dbus.ObjectPath
	}
	if err := c.call(ctx, manager, managerIf+".ListUnitsByPatterns", []string{"active", "activating", "reloading", "deactivating"}, patterns).Store(&units); err != nil {
		return nil, fmt.Errorf("list units: %w", explain(err))
	}
	var names []string
	for _, u := range units {
		names = append(names, u.Name)
	}
	return names, nil
}

// globQuote returns a pattern that matches only text (fnmatch(3)).
func globQuote(text string) string {
	var quoted []byte
	for _, c := range []byte(text) {
		if !inName(rune(c)) || c == '\\' {
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, c)
	}
	return string(quoted)
}
