package pacer

import (
	"context"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// A meter counts what a group owes the pacer.
type meter interface {
	// look returns the bytes since the last look that the kernel's rules have not seen. members
	// are the group's processes, as listed since now: to move one, which can take 95 ms, comes between.
	look(now time.Duration, members []int) (unseen float64, err error)
	// joined says that others were put among them: what they have done before is nothing of the group's.
	joined()
	// charged is what the kernel was seen to charge in that look, and to hold: it takes of the
	// bucket what there is.
	charged() float64
	// on says on which devices, and at what rate.
	on(j Job)
	close()
}

// newMeter makes the meter that a job asks for.
func (s *server) newMeter(j Job, limited cgroupfs.Group) (meter, error) {
	if j.Count == CountEscaped {
		w, err := s.escapes.get()
		if err != nil {
			return nil, err
		}
		return newEscaped(j, limited, w, s.partial.get, clockNow())
	}
	m := &written{limited: limited, devices: blkdev.New(s.fs.Root()), folios: folios{load: s.partial.get}, last: s.exits.tell.Last}
	m.on(j)
	return m, nil
}

// written counts what a group's processes dirtied and the kernel's rules have not seen.
type written struct {
	limited   cgroupfs.Group // whose rules the kernel keeps
	devices   blkdev.FS
	gates     map[blkdev.Number]*gate
	upon      blkdev.Upon // of the gates
	ledger    ledger
	least     float64       // see askLeast
	uncounted float64       // what was charged and is not in the ledger yet
	owed      float64       // by the ledger, and no look has told it yet
	lendAgain time.Duration // when a loan that failed is tried again
	taken     float64       // see charged
	folios    folios
	sum       process.Sum
	last      func(pid int) (process.IO, bool) // see process.Source
	before    process.IO
	looked    bool
	stats     *cgroupfs.OpenStats
}

// on opens a gate for each device. That its rule cannot be read is no error: nothing is lent
// on it.
func (m *written) on(j Job) {
	m.least = float64(j.WBPS) * askLeast.Seconds()
	gates := make(map[blkdev.Number]*gate)
	rules, _ := m.limited.RulesIfAny()
	for _, d := range j.Devices {
		g := m.gates[d]
		if g == nil {
			g = &gate{}
		}
		g.rate = 0
		for _, r := range rules {
			if n, bound := r.Limit.WBPS.Number(); bound && r.Device == d {
				g.rate = float64(n)
			}
		}
		gates[d] = g
	}
	m.gates, m.upon = gates, m.devices.Upon(context.Background(), j.Devices) // sysfs answers at once
	m.begin()
}

// total is what was charged for writing to a device, at the last look.
func (m *written) total(d blkdev.Number) uint64 {
	if g := m.gates[d]; g != nil {
		return g.charged
	}
	return 0
}

func (m *written) look(now time.Duration, members []int) (unseen float64, err error) {
	from := process.Proc
	from.Last = m.last
	io := m.sum.LookAt(members, process.Ago(max(0, clockNow()-now)), from)
	more := io.Minus(m.before)
	m.before = io
	charged, err := m.charge(now)
	charged, m.uncounted = charged+m.uncounted, 0
	if !m.looked { // what was before is not to be paid for
		m.looked, charged = true, 0
	}
	unseen, m.taken = m.ledger.enter(m.folios.written(more, now), charged, m.least, now)
	unseen, m.owed = unseen+m.owed, 0
	return unseen, err
}

func (m *written) joined() { m.sum.Joined() }

func (m *written) charged() float64 { return m.taken }

// charge is what was charged for writing to the devices since the last look. On v2 that may be
// the writeback of what was counted when it was made dirty (seen: twice the limit got through),
// and is nothing: all writes of the group count. What was charged to a volume and to its disk counts
// once. The volume's comes first, so what was a disk's own never falls again.
func (m *written) charge(now time.Duration) (more float64, err error) {
	if m.limited.Hierarchy().Version == cgroupfs.V2 {
		return 0, nil
	}
	if m.stats == nil {
		if m.stats, err = m.limited.OpenStats(); err != nil {
			return more, err
		}
	}
	stats, err := m.stats.Bytes()
	if err != nil {
		return more, err
	}
	m.know(stats, now)
	for _, s := range stats {
		if g := m.gates[s.Device]; g != nil {
			g.charge(s.WrittenBytes, now)
		}
	}
	for d, g := range m.gates {
		if own := m.upon.Own(d, m.total); own > g.own {
			more, g.own = more+float64(own-g.own), own
		}
	}
	return more, nil
}

// know has new gates begin with what was charged before them. So do the others, as it may have come through a new one.
func (m *written) know(stats []cgroupfs.Stat, now time.Duration) {
	isNew := false
	for d, g := range m.gates {
		if g.known {
			continue
		}
		isNew, g.known, g.at = true, true, now
		for _, s := range stats {
			if s.Device == d {
				g.charged = s.WrittenBytes
			}
		}
	}
	if isNew {
		m.begin()
	}
}

// begin has each gate begin with what was its own until now.
func (m *written) begin() {
	for d, g := range m.gates {
		g.own = m.upon.Own(d, m.total)
	}
}

func (m *written) close() {
	m.sum.Close()
	m.folios.close()
	if m.stats != nil {
		_ = m.stats.Close()
	}
}
