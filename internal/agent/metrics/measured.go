package metrics

import (
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
)

// measuredMost is how old a measurement may be that is told: it is one of how a limit is held now.
const measuredMost = 5 * time.Minute

// A measuring has a held.Judge judge what a Feed reads. A measurement takes readings each second or so;
// from those of scrapes alone nothing can be told.
type measuring struct {
	judge *held.Judge
	near  map[string]time.Time // when groups were near a limit last, by their paths
}

func newMeasuring() *measuring {
	return &measuring{judge: held.NewJudge(), near: map[string]time.Time{}}
}

// look takes the next snapshot. Groups that were not near a limit for long are forgotten, and cost
// nothing: of thousands that is what most are.
func (m *measuring) look(s *watch.Snapshot) {
	for _, g := range s.Groups {
		if isNear(g) {
			m.near[g.Path] = s.At
		}
	}
	all := make([]held.Target, 0, len(m.near))
	for path, at := range m.near {
		if s.At.Sub(at) > measuredMost {
			delete(m.near, path)
			continue
		}
		all = append(all, held.Target{Key: path, Group: path})
	}
	if len(all) > 0 {
		m.judge.Look(s, all)
	}
}

// nearLeast is from what percentage of a limit on a group is near it: enough below what a measurement
// takes that the reading before that begins is judged too.
const nearLeast = 50

// isNear reports whether a group is near one of its limits, or above it.
func isNear(g *watch.Group) bool {
	for _, d := range g.Devices {
		if d.Rates == nil || *d.Rates == (watch.Rates{}) {
			continue
		}
		for _, k := range limit.Keys {
			if percent, known := d.Percent(k); known && percent >= nearLeast {
				return true
			}
		}
	}
	return false
}

// A limitOf is the limits of a group on a device in one direction.
type limitOf struct {
	path      string
	device    blkdev.Number
	direction string
}

// at is which limits were measured lately: true if all were held, false if one was not. Of the others
// nothing is told.
func (m *measuring) at(now time.Time) map[limitOf]bool {
	all := map[limitOf]bool{}
	for path := range m.near {
		for _, l := range m.judge.Of(path).Limits {
			if l.State == held.NotTold || now.Sub(l.To) > measuredMost {
				continue
			}
			of := limitOf{path, l.Device, l.Key.Direction()}
			before, is := all[of]
			all[of] = l.State == held.Held && (before || !is)
		}
	}
	return all
}
