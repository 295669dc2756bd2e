package api

import (
	"slices"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/look/watch"
)

// A TopEvent is one of the events at GET /top/events: a reading of all groups, or a part of one. The
// groups are those that have changed since the reading before.
type TopEvent struct {
	Top
	Whole bool     `json:"whole"` // what was known before is to be forgotten
	Gone  []string `json:"gone"`  // cgroups that are not there any more
	More  bool     `json:"more"`  // the same reading goes on in the next event
}

// TopEventName is the name of the events.
const TopEventName = "top"

// topEventGroups and topEventDevices are how many groups one event has, and from how many devices of them on it has no
// more. topEventGone is how many groups that are gone it has.
const topEventGroups, topEventDevices, topEventGone = 200, 1000, 1000

// A TopFrame is a reading, with what is known beside it.
type TopFrame struct {
	Snapshot *watch.Snapshot
	Beside   TopBeside
	// Same reports whether what is known beside the group of a path is the same as in the frame before; nil: it is not known.
	Same func(path string) bool
}

// Events makes the events for who has the reading before; nil: who has none. Each is JSON, made as it is asked for.
func (f TopFrame) Events(before *watch.Snapshot, each func([]byte) bool) bool {
	groups, gone := f.changed(before)
	e := TopEvent{Whole: before == nil}
	for first := true; first || len(groups)+len(gone) > 0; first = false {
		left := min(len(gone), topEventGone)
		e.Gone, gone = gone[:left], gone[left:]
		n := 0
		if len(gone) == 0 { // who is told forgets first, and takes then
			n = firstGroups(groups)
		}
		e.Top, e.More = topHeadOf(f.Snapshot, f.Beside), len(groups) > n || len(gone) > 0
		e.Schema = SchemaOf("top.event")
		for _, g := range groups[:n] {
			e.Groups = append(e.Groups, f.Beside.group(g))
		}
		text, err := rawtext.Marshal(e)
		if err != nil || !each(text) {
			return false
		}
		e.Whole, groups = false, groups[n:]
	}
	return true
}

// firstGroups is how many of some groups are in the next event.
func firstGroups(groups []*watch.Group) (n int) {
	for devices := 0; n < min(len(groups), topEventGroups) && devices < topEventDevices; n++ {
		devices += len(groups[n].Devices)
	}
	return n
}

// changed are the groups that are others than in the reading before, and the paths of those that are gone. A watcher
// keeps a group of which nothing has changed, and both readings are in the order of the paths.
func (f TopFrame) changed(before *watch.Snapshot) (groups []*watch.Group, gone []string) {
	gone = []string{}
	if before == nil {
		return slices.Clone(f.Snapshot.Groups), gone
	}
	was := before.Groups
	for _, g := range f.Snapshot.Groups {
		for len(was) > 0 && was[0].Path < g.Path {
			gone, was = append(gone, was[0].Path), was[1:]
		}
		known := len(was) > 0 && was[0].Path == g.Path
		if !known || was[0] != g || f.Same == nil || !f.Same(g.Path) {
			groups = append(groups, g)
		}
		if known {
			was = was[1:]
		}
	}
	for _, g := range was {
		gone = append(gone, g.Path)
	}
	return groups, gone
}
