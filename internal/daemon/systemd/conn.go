package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
)

const (
	busName   = "org.freedesktop.systemd1"
	managerIf = "org.freedesktop.systemd1.Manager"
	unitIf    = "org.freedesktop.systemd1.Unit"
	scopeIf   = "org.freedesktop.systemd1.Scope"
	propsIf   = "org.freedesktop.DBus.Properties"

	manager = dbus.ObjectPath("/org/freedesktop/systemd1")
)

// Running reports whether systemd is PID 1 of the host below root (sd_booted(3)).
func Running(root string) bool {
	st, err := os.Lstat(filepath.Join(root, "run/systemd/system"))
	return err == nil && st.IsDir()
}

// A Conn is a connection to PID 1.
type Conn struct {
	bus     *dbus.Conn
	root    string // below which systemd has its files
	release func() // ends a use of a Line; nil: the connection is this Conn's own
}

// On returns a connection over one that is made already, to the systemd of the machine whose files
// are below root.
func On(bus *dbus.Conn, root string) *Conn { return &Conn{bus: bus, root: root} }

// Connect opens systemd's own socket, which root may use and which exists before any bus
// daemon; otherwise it opens the system bus. The caller closes the connection.
func Connect(ctx context.Context) (*Conn, error) {
	if os.Geteuid() == 0 {
		bus, err := dbus.Dial("unix:path=/run/systemd/private", dbus.WithContext(ctx))
		if err == nil {
			if err = bus.Auth([]dbus.Auth{dbus.AuthExternal(fmt.Sprint(os.Getuid()))}); err == nil {
				if err = nudge(ctx, bus); err == nil {
					return On(bus, "/"), nil
				}
			}
			err = errors.Join(err, bus.Close())
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("connect to systemd: %w", err)
		}
	}
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil && os.Geteuid() != 0 {
		return nil, fmt.Errorf("connect to the system bus: %w (root reaches systemd without it; run weir as root)", err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the system bus: %w", err)
	}
	return On(bus, "/"), nil
}

// nudge sends systemd a message that needs no answer and is longer than what systemd reads at
// once while a client authenticates (256 bytes, or twice as many as came before: its sd-bus,
// bus_socket_read_auth). systemd keeps what arrives together with the end of the
// authentication, and does not process it before more data arrives. A short first call would
// wait forever.
func nudge(ctx context.Context, bus *dbus.Conn) error {
	path := dbus.ObjectPath("/" + strings.Repeat("x", 4096))
	return bus.Object(busName, path).CallWithContext(ctx, "org.freedesktop.DBus.Peer.Ping", dbus.FlagNoReplyExpected).Err
}

// Close ends the connection, or the use of one that a Line keeps.
func (c *Conn) Close() error {
	if c.release != nil {
		c.release()
		return nil
	}
	return c.bus.Close()
}

// call names systemd as the destination on its own socket too, where no bus daemon needs it.
// Otherwise godbus sends an empty destination, and systemd drops such a message without an
// answer.
func (c *Conn) call(ctx context.Context, path dbus.ObjectPath, method string, args ...any) *dbus.Call {
	return c.bus.Object(busName, path).CallWithContext(ctx, method, 0, args...)
}

func (c *Conn) property(ctx context.Context, path dbus.ObjectPath, iface, name string, into any) error {
	var v dbus.Variant
	if err := c.call(ctx, path, propsIf+".Get", iface, name).Store(&v); err != nil {
		return fmt.Errorf("read %s of %s: %w", name, path, err)
	}
	return v.Store(into)
}
