package systemd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Slices that always exist: the root of all slices, and the slice of services and other units
// without a slice of their own.
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

// Anchor starts an empty slice within a slice, which asks for accounting of disk I/O until the
// next boot, unless it is running already.
//
// On cgroup v1 it keeps systemd from moving processes. When the first unit of a slice asks for
// that accounting ("BlockIO"), and again when the last such unit stops, systemd moves all
// processes of that slice and of those beside it to their units' groups in v1's blkio hierarchy
// (systemd's unit_update_cgroup, cg_migrate_v1_controllers).
//
// On v2 ("IO") it keeps systemd from disabling the io controller for the groups of a slice when
// the last of its units that needs it stops. That would include groups that others have made
// and limited (systemd's cg_enable_everywhere).
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

// checkAnchor returns an error if a unit with an anchor's name is not an anchor.
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

// settle waits until systemd has done its queued cgroup work, which it does before it answers
// another question.
func (c *Conn) settle(ctx context.Context, object dbus.ObjectPath) error {
	var state string
	for range 2 {
		if err := c.property(ctx, object, unitIf, "ActiveState", &state); err != nil {
			return fmt.Errorf("wait for systemd: %w", err)
		}
	}
	return nil
}
