package running

import (
	"slices"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/escape"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/tally"
)

// watch watches with BPF what goes past limits on writes; nil if BPF is not available.
func (r *Run) watch() tally.Watcher {
	g := r.room.IO
	if r.Decided.Escapes != nil { // the pacer has one
		return r.host.Pacer().Watcher(pacer.PlaceOf(g, "blkio"))
	}
	if g.Hierarchy().Version != cgroupfs.V2 || !slices.ContainsFunc(r.Decided.Places, func(e place.Expected) bool { return e.LimitsWrites() }) {
		return nil
	}
	w, err := escape.Watch(r.host.FS)
	if err != nil {
		return nil // it is worked out then
	}
	return w
}

func closeWatcher(w tally.Watcher) {
	if own, is := w.(*escape.Watcher); is {
		_ = own.Close() // it ends with weir
	}
}

// stops is how often the pacer has paused the group.
func (r *Run) stops() uint64 {
	seen, err := r.host.Pacer().Seen(pacer.PlaceOf(r.room.IO, "blkio"))
	if err != nil {
		return 0 // it is only told
	}
	return seen.Stops
}
