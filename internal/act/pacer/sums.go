package pacer

import (
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Sum is what a pacer has done to a group since it holds the group: a pacer that takes over begins
// anew.
type Sum struct {
	Limited Place         `json:"limited"`
	Paused  time.Duration `json:"paused"` // for how long the group was paused in all
	// Escaped are the bytes that BPF saw written to files of other groups, by disk. nil: none, or
	// nobody can tell.
	Escaped map[blkdev.Number]uint64 `json:"escaped,omitempty"`
}

// sumsMost bounds an answer: the pacer paces nobody while it makes one.
const sumsMost = 4096

// sums are those of the groups to which the pacer has done anything.
func (s *server) sums() []Sum {
	now := clockNow()
	var all []Sum
	for p, h := range s.jobs {
		sum := Sum{Limited: h.job.Limited, Paused: p.paused}
		if p.stopped {
			sum.Paused += now - p.halted
		}
		if m, is := p.meter.(*escaped); is && m.any && s.escapes.usable() {
			sum.Escaped, _ = s.escaped(m, uint64(max(0, m.folios.all))) // nobody can tell
		}
		if sum.Paused > 0 || len(sum.Escaped) > 0 {
			all = append(all, sum)
		}
		if len(all) == sumsMost {
			break
		}
	}
	return all
}

// Sums asks the pacer that is running what it has done to its groups, and waits no longer than most.
// It starts none: that none is running is an error.
func (c Client) Sums(most time.Duration) ([]Sum, error) {
	a, err := c.once(ask{Sums: true}, most)
	return a.Sums, err
}
