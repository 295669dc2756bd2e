package systemd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Slices that are always there: the one that all others are in, and that of services and of
// what is started without another one.
const (
	RootSlice   = "-.slice"
	SystemSlice = "system.slice"
)

// AnchorOf names weir's own slice within a slice: "system-weir.slice" in system.slice.
func AnchorOf(slice string) string {
	if slice == RootSlice {
		return "weir.slice"
	}
	return strings.TrimSuffix(slice, ".slice") + "-weir.slice"
}

// Anchor starts an empty slice within a slice, that asks for accounting of disk I/O until
// the next boot, if it is not there yet.
//
// On cgroup v1 it keeps systemd from moving processes: when the first unit of a slice asks
// for that accounting ("BlockIO"), and again when the last that did ends, systemd puts all
// processes of that slice and of those beside it where it thinks that they belong in v1's
// hierarchy of blkio (systemd's unit_update_cgroup, cg_migrate_v1_controllers).
//
// On v2 ("IO") it keeps systemd from taking the io controller away from the groups of a
// slice, also from those that others have made and limited, when the last of its units
// that needs it ends (systemd's cg_enable_everywhere).
func (c *Conn) Anchor(ctx context.Context, slice string, accounting Setting) error {
	object, err := c.startTransient(ctx, AnchorOf(slice), []Setting{
		{"Description", dbus.MakeVariant("Keeps limits on disk I/O in force (weir)")},
		accounting,
	})
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == "org.freedesktop.systemd1.UnitExists" {
		return c.checkAnchor(ctx, AnchorOf(slice), accounting)
	}
	if err != nil {
		return explain(err)
	}
	return c.settle(ctx, object)
}

// checkAnchor refuses a unit of an anchor's name that is none.
func (c *Conn) checkAnchor(ctx context.Context, name string, accounting Setting) error {
	u, err := c.Unit(ctx, name)
	if err != nil {
		return err
	}
	var accounts bool
	if err := c.property(ctx, u.object, interfaceOf(name), accounting.Name, &accounts); err != nil {
		return fmt.Errorf("look up unit %s: %w", name, err)
	}
	if u.Active != "active" || !accounts {
		return fmt.Errorf("unit %s exists already, is %s and has %s=%t; weir needs an active one with %s", name, u.Active, accounting.Name, accounts, accounting)
	}
	return nil
}

// settle waits until systemd has done what it has queued for cgroups: it does that
// before it looks at another question.
func (c *Conn) settle(ctx context.Context, object dbus.ObjectPath) error {
	var state string
	for range 2 {
		if err := c.property(ctx, object, unitIf, "ActiveState", &state); err != nil {
			return fmt.Errorf("wait for systemd: %w", err)
		}
	}
	return nil
}
