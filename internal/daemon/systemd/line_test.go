package systemd

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// newLine is a Line whose connections lead nowhere, and counts them.
func newLine(t *testing.T) (l *Line, dialled *int, fail *error) {
	dialled, fail = new(int), new(error)
	l = &Line{idle: time.Hour, Dial: func(ctx context.Context) (*Conn, error) {
		if *dialled++; *fail != nil {
			return nil, *fail
		}
		here, there := net.Pipe()
		t.Cleanup(func() { there.Close() })
		bus, err := dbus.NewConn(here, dbus.WithContext(ctx))
		return &Conn{bus: bus}, err
	}}
	t.Cleanup(func() { l.Close() })
	return l, dialled, fail
}

func connect(ctx context.Context, t *testing.T, l *Line) *Conn {
	t.Helper()
	c, err := l.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// One connection serves use after use, also beyond the context that it was made in, until systemd
// closes it.
func TestLine(t *testing.T) {
	l, dialled, fail := newLine(t)
	ctx, stop := context.WithCancel(t.Context())
	first := connect(ctx, t, l)
	stop()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	second := connect(t.Context(), t, l)
	if *dialled != 1 || second.bus != first.bus || !second.bus.Connected() {
		t.Fatalf("%d connections", *dialled)
	}
	if err := second.bus.Close(); err != nil { // as systemd does when it executes itself anew
		t.Fatal(err)
	}
	*fail = errors.New("no systemd")
	if _, err := l.Connect(t.Context()); !errors.Is(err, *fail) {
		t.Error(err)
	}
	*fail = nil
	third := connect(t.Context(), t, l)
	if *dialled != 3 || third.bus == first.bus || !third.bus.Connected() {
		t.Errorf("%d connections", *dialled)
	}
	if err := errors.Join(second.Close(), second.Close(), third.Close(), l.Close()); err != nil || third.bus.Connected() {
		t.Errorf("%v; connected %t", err, third.bus.Connected())
	}
	done, stopped := context.WithCancel(t.Context())
	stopped()
	if _, err := l.Connect(done); !errors.Is(err, context.Canceled) {
		t.Errorf("within a context that has ended: %v", err)
	}
}

// A connection is closed once nobody has used it for a while, and not before.
func TestLineIdles(t *testing.T) {
	l, dialled, _ := newLine(t)
	l.idle = time.Millisecond
	first, second := connect(t.Context(), t, l), connect(t.Context(), t, l)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(20 * l.idle) // a promise
	if !second.bus.Connected() || *dialled != 1 {
		t.Fatal("it is closed while it is used")
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(20 * time.Second); second.bus.Connected(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it stays")
		}
	}
	if third := connect(t.Context(), t, l); *dialled != 2 || !third.bus.Connected() {
		t.Errorf("%d connections", *dialled)
	}
}
