package escape

import (
	"context"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// suspects tell a Meter with an Estimate whether the escapes that it seems to see are possible,
// so that no process is paused because of an error of the counters.
type suspects struct {
	began  time.Time
	on     map[blkdev.Number]bool // of what stat(2) says: whether it is on the disks
	looked time.Duration
	since  time.Duration // when there was reason to believe it last; -1: never
}

const (
	// suspectEvery is how often open files are listed, which takes about 20 µs each.
	suspectEvery = 60 * time.Millisecond
	// clockMost is how far a file system's clock, which ticks, can be behind.
	clockMost = 20 * time.Millisecond
	// suspectFor is how long a finding counts: the writer may have ended.
	suspectFor = time.Second
)

// Suspect reports whether files were open lately through which bytes can have escaped: a file
// on the disks that is older than the Meter. It returns false if a file is written past the
// page cache, or on another disk, because such writes look like escapes. What BPF has seen is
// certain.
func (m *Meter) Suspect(pids []int, now time.Duration) bool {
	if m.watcher != nil {
		return true
	}
	s := &m.suspects
	if s.looked == 0 || now-s.looked >= suspectEvery {
		s.looked = now
		switch older, doubtful := m.open(Writables(pids)); {
		case doubtful:
			s.since = -1
		case older:
			s.since = now
		}
	}
	return s.since >= 0 && now-s.since <= suspectFor
}

// open judges which files processes have open for writing.
func (m *Meter) open(files []Writable) (older, doubtful bool) {
	for _, f := range files {
		on, known := m.suspects.on[f.Device]
		if !known {
			on = slices.ContainsFunc(m.devices, Disks(context.Background(), f.Device)) // sysfs answers at once
			m.suspects.on[f.Device] = on
		}
		if !on || f.Direct {
			return older, true
		}
		older = older || !f.Born.After(m.suspects.began)
	}
	return older, false
}
