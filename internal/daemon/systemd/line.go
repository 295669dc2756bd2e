package systemd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// lineIdle is how long a Line keeps a connection that nobody uses. systemd sends everything that
// happens to all units to each connection on its own socket, whether it asks for that or not
// (bus_foreach_bus in src/core/dbus.c).
const lineIdle = 5 * time.Second

// A Line is one connection to PID 1 that is kept between its uses: to make one takes five messages
// each way, and a change of a unit's limits two. Its zero value has none yet.
type Line struct {
	Dial func(context.Context) (*Conn, error) // nil: Connect
	idle time.Duration                        // 0: lineIdle

	mu    sync.Mutex
	bus   *dbus.Conn // nil: there is none
	root  string
	end   context.CancelFunc
	uses  int
	timer *time.Timer
}

// Connect is Connect for a connection that may be there already. One that systemd has closed is made
// anew. The caller closes it after use.
func (l *Line) Connect(ctx context.Context) (*Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bus != nil && !l.bus.Connected() {
		_ = l.hangUp() // it is closed
	}
	if l.bus == nil {
		if err := l.connect(ctx); err != nil {
			return nil, err
		}
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.uses++
	return &Conn{bus: l.bus, root: l.root, release: sync.OnceFunc(l.release)}, nil
}

// connect makes a connection, within the context, that outlives it.
func (l *Line) connect(ctx context.Context) error {
	dial := l.Dial
	if dial == nil {
		dial = Connect
	}
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	conn, err := dial(lasting)
	if err == nil && !stop() {
		err = errors.Join(context.Cause(ctx), conn.Close())
	}
	if err != nil {
		end()
		return err
	}
	l.bus, l.root, l.end = conn.bus, conn.root, end
	return nil
}

// release ends a use.
func (l *Line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.uses--; l.uses > 0 || l.bus == nil {
		return
	}
	idle := l.idle
	if idle == 0 {
		idle = lineIdle
	}
	l.timer = time.AfterFunc(idle, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.uses == 0 {
			_ = l.hangUp() // nothing is under way
		}
	})
}

// hangUp closes the connection. The caller has the lock.
func (l *Line) hangUp() error {
	if l.bus == nil {
		return nil
	}
	err := l.bus.Close()
	l.end()
	l.bus, l.end = nil, nil
	return err
}

// Close closes the connection. The Line can be used again.
func (l *Line) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.bus != nil && !l.bus.Connected() {
		_ = l.hangUp() // it is closed
	}
	return l.hangUp()
}
