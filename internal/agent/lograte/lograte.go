// Package lograte bounds how many lines a log gets. What is left out is counted, and the next line
// says how many lines that were.
package lograte

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A handler passes on what the rate allows.
type handler struct {
	slog.Handler
	bucket *bucket
}

// A bucket fills with time, up to its size. A line takes one from it.
type bucket struct {
	mu      sync.Mutex
	perSec  float64
	size    float64
	level   float64
	last    time.Time
	leftOut int
}

// New bounds a handler to so many lines a second, over time, and to burst lines at once.
func New(h slog.Handler, perSec, burst float64) slog.Handler {
	return &handler{h, &bucket{perSec: perSec, size: burst, level: burst}}
}

// Handle passes a line on, or leaves it out.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	ok, leftOut := h.bucket.take(r.Time)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r.AddAttrs(slog.Int("lines_left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

func (b *bucket) take(now time.Time) (ok bool, leftOut int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.last.IsZero() {
		b.level = min(b.size, b.level+b.perSec*max(0, now.Sub(b.last).Seconds()))
	}
	b.last = now
	if b.level < 1 {
		b.leftOut++
		return false, 0
	}
	b.level--
	leftOut, b.leftOut = b.leftOut, 0
	return true, leftOut
}

// WithAttrs has the same bound.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.bucket}
}

// WithGroup has the same bound.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.bucket}
}
