package watch

import (
	"slices"
	"time"
)

// markPaced notes what the pacer holds.
func (w *Watcher) markPaced(now time.Time) {
	if w.o.Paced == nil || !w.asked.IsZero() && now.Sub(w.asked) < pacedEvery {
		return
	}
	between := now.Sub(w.asked)
	w.asked = now
	paced, err := w.o.Paced()
	w.failed(err)
	if err != nil {
		return
	}
	for path, e := range w.entries {
		e.pacedBy(paced[path])
	}
	w.markPaused(between)
}

// markPaused notes for how long the pacer has paused the groups that it holds.
func (w *Watcher) markPaused(between time.Duration) {
	held := func(e *entry) bool { return e.paced != nil && e.paced.Lapsed == "" }
	var paused map[string]time.Duration
	if w.o.Paused != nil && slices.ContainsFunc(w.order, held) {
		var err error
		if paused, err = w.o.Paused(); err != nil { // as to a user who may not ask it
			paused = nil
		}
	}
	for path, e := range w.entries {
		if paused == nil || !held(e) {
			e.pausedFor(nil)
			continue
		}
		e.pausedFor(pausedOf(paused[path], e.paused, between))
	}
}
