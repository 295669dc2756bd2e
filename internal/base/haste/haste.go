// Package haste has work that can wait make room for work that somebody waits for, where both need the same
// processors.
package haste

import (
	"context"
	"sync"
	"time"
)

// waitMost bounds for how long those who hurry, one after the other without a pause, keep the others waiting: one
// that hangs keeps nobody from their work.
const waitMost = 100 * time.Millisecond

// A Gate is open while nobody hurries. The zero Gate is open; so is a nil one, always. Its methods may be called from
// several goroutines.
type Gate struct {
	mu    sync.Mutex
	busy  int           // how many hurry
	since time.Time     // somebody hurries
	open  chan struct{} // is closed when nobody does any more
}

// Hurry closes the gate until done is called.
func (g *Gate) Hurry() (done func()) {
	if g == nil {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy == 0 {
		g.since, g.open = time.Now(), make(chan struct{})
	}
	g.busy++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.busy--; g.busy == 0 {
			close(g.open)
		}
	})
}

// GiveWay waits while the gate is closed: until nobody hurries, the context ends, or somebody has hurried for too long.
func (g *Gate) GiveWay(ctx context.Context) {
	if g == nil {
		return
	}
	g.mu.Lock()
	busy, open, left := g.busy, g.open, waitMost-time.Since(g.since)
	g.mu.Unlock()
	if busy == 0 || left <= 0 {
		return
	}
	enough := time.NewTimer(left)
	defer enough.Stop()
	select {
	case <-open:
	case <-enough.C:
	case <-ctx.Done():
	}
}
