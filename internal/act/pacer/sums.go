package pacer

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Sum is what a pacer has done to a group since it holds the group: a pacer that takes over begins
// anew. No figure in it ever falls.
type Sum struct {
	Limited Place         `json:"limited"`
	Paused  time.Duration `json:"paused"` // ns for which the group was paused in all, but for its owner's pauses
	// Escaped are the bytes that BPF saw written to files of other groups, by disk. nil: none, or
	// nobody can tell.
	Escaped map[blkdev.Number]uint64 `json:"escaped,omitempty"`
}

// sumsMost bounds an answer: the pacer paces nobody while it makes one.
const sumsMost = 4096

// sums are those of the groups to which the pacer has done anything. It asks BPF nothing: escapes are
// those of each group's last look.
func (s *server) sums() []Sum {
	now := clockNow()
	all := []Sum{}
	for p, h := range s.jobs {
		sum := Sum{Limited: h.job.Limited, Paused: p.sum(now)}
		if m, is := p.meter.(*escaped); is && s.escapes.usable() {
			sum.Escaped = m.sum()
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

// sum is for how long the group was paused. After a stall, of which nobody knows what the guards made, it is what
// it was, until the rest has come to that.
func (p *paced) sum(now time.Duration) time.Duration {
	paused := p.paused
	if p.stopped && !p.joined {
		paused += now - p.halted
	}
	p.told = max(p.told, paused)
	return p.told
}

// sum is what has escaped. What was counted whole, and is seen later to be a part of a folio, takes off
// what comes then, and nothing that was told.
func (m *escaped) sum() map[blkdev.Number]uint64 {
	all := m.meter.ByDisk()
	without(all, uint64(max(0, m.folios.all)), m.meter.Disks())
	for n, bytes := range m.told {
		all[n] = max(all[n], bytes)
	}
	m.told = maps.Clone(all)
	return all
}

// Sums asks the pacer that is running what it has done to its groups, and waits no longer than most.
// It starts none: that none is running is an error.
func (c Client) Sums(most time.Duration) ([]Sum, error) {
	a, err := c.once(ask{Sums: true}, most)
	switch {
	case err != nil:
		return nil, err
	case a.Sums == nil:
		return nil, errors.New("ask the pacer: it is of an older weir, and does not tell what it has done")
	case len(a.Sums) >= sumsMost: // those that are missing would seem to have been reset
		return nil, fmt.Errorf("ask the pacer: it has paused %d groups or more, and tells of fewer only", sumsMost)
	}
	return a.Sums, nil
}
