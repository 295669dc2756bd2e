package top

import (
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// A Measuring says of the groups of a view whether their limits are held, from the snapshots that the
// view shows. What it measured of groups that are gone it forgets. One goroutine at a time may use it.
type Measuring struct {
	judge   *held.Judge
	targets []held.Target // room for those of one look
}

// NewMeasuring makes one that has measured nothing.
func NewMeasuring() *Measuring { return &Measuring{judge: held.NewJudge()} }

// Look takes the next snapshot. takes says which groups are measured; those without limits are not.
func (m *Measuring) Look(s *watch.Snapshot, takes func(*watch.Group) bool) {
	all := m.targets[:0]
	for _, g := range s.Groups {
		if g.Limited() && takes(g) {
			all = append(all, held.Target{Key: g.Path, Group: g.Path, Is: g})
		}
	}
	m.judge.Look(s, all)
	m.targets = all
}

// look is Look for all groups of a snapshot, whose facts are known.
func (m *Measuring) look(s *watch.Snapshot, facts []fact) {
	all := m.targets[:0]
	for i := range facts {
		if f := &facts[i]; f.limited {
			all = append(all, held.Target{Key: f.path, Group: f.path, Is: f.Group})
		}
	}
	m.judge.Look(s, all)
	m.targets = all
}

// Of is what was measured of the group of a path.
func (m *Measuring) Of(path string) held.Verdict { return m.judge.Of(path) }

// MeasuredWord is a group's verdict in two words; empty: nothing is told.
func MeasuredWord(v held.Verdict) string {
	return map[held.State]string{held.Held: "measured: held", held.NotHeld: "measured: NOT HELD"}[v.State]
}

// heldWord and notHeldWord are what a table says of what was measured.
const heldWord, notHeldWord = "held", "NOT HELD"

// toldText says in a word what was measured of a group's limits; empty: nothing is told.
func toldText(v held.Verdict) string {
	switch v.State {
	case held.Held:
		return heldWord
	case held.NotHeld:
		return notHeldWord
	}
	return ""
}

// MeasuredText says what was measured of one limit.
func MeasuredText(l held.Limit) string {
	rate := limit.FormatMeasured(l.Rate) + "/s"
	if l.Key.IsOps() {
		rate = OpsText(l.Rate) + " ops/s"
	}
	over := cli.Duration(l.To.Sub(l.From).Round(time.Second))
	switch l.State {
	case held.Held:
		return "held: " + rate + " over " + over
	case held.NotHeld:
		return "NOT HELD: " + rate + " over " + over
	}
	return "not told: " + plain.Line(l.Why)
}
