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
// the next boot, if it is not there yet. On cgroup v1 it keeps systemd from moving
// processes: when the first unit of a slice asks for that accounting, and again when the
// last that did ends, systemd puts all processes of that slice and of those beside it
// where it thinks that they belong in v1's hierarchy of blkio (systemd's
// unit_update_cgroup, cg_migrate_v1_controllers).
func (c *Conn) Anchor(ctx context.Context, slice string) error {
	object, err := c.startTransient(ctx, AnchorOf(slice), []Setting{
		{"Description", dbus.MakeVariant("Keeps limits on disk I/O in force (weir)")},
		Accounting("BlockIO"),
	})
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == "org.freedesktop.systemd1.UnitExists" {
		return nil
	}
	if err != nil {
		return explain(err)
	}
	return c.settle(ctx, object)
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
