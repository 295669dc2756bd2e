package running

import (
	"slices"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/tally"
	"github.com/weir-io/weir/internal/place"
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
	w, err := escape.Ask(r.host.FS, r.host.Helpers)
	if err != nil {
		return nil // it is worked out then
	}
	return w
}

func closeWatcher(w tally.Watcher) {
	if own, is := w.(*escape.Asker); is {
		_ = own.Close() // it ends with weir
	}
}

// paced adds what the pacer knows of the group: how often it was paused, and what the kernel
// has counted of folios that the command has not written. Without an answer they are 0.
func (r *Run) paced(result *launch.Result, w tally.Watcher) {
	if r.Decided.Escapes == nil && r.Decided.Paced == nil {
		return
	}
	seen, err := r.host.Pacer().Seen(pacer.PlaceOf(r.room.IO, "blkio"))
	if err != nil {
		return
	}
	if r.Decided.Escapes != nil {
		result.Stops = seen.Stops
	}
	if result.Tally != nil {
		result.Tally.Without(seen.Spare)
		if own, is := w.(*pacer.Watcher); seen.Resumed {
			result.Tally.Unsure = "weir's pacer was killed meanwhile, and with it what it knew of writes to parts of folios"
		} else if is && own.Anew(seen) {
			result.Tally.Unsure = "the group's limits were set meanwhile, and weir's pacer began to count writes to parts of folios anew"
		}
	}
}
