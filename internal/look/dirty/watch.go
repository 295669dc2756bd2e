package dirty

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
)

// A Count is how much is dirty and how much is in writeback, in bytes.
type Count struct {
	Dirty     uint64
	Writeback uint64
}

// Sum is both: what the kernel holds against the thresholds.
func (c Count) Sum() uint64 { return c.Dirty + c.Writeback }

// A Reading is one look.
type Reading struct {
	At         time.Duration
	Host       Count
	HostLevels *Levels // nil: not known
	Group      *Count  // nil: no group was asked for, or it is gone
	OwnLevels  *Levels // an estimate; nil: the group has none of its own
}

// readingsMost bounds how many readings are kept.
const readingsMost = 600

// Every is how long lies between two readings of a watch.
func Every(window time.Duration) time.Duration {
	return max(100*time.Millisecond, window/readingsMost)
}

// Watch reads until the window is over or the context ends, at least twice. group is in the
// hierarchy of the memory controller, or nil. settings are those of the last reading.
func Watch(ctx context.Context, host kernel.FS, group *cgroupfs.Group, window time.Duration, seen func(Reading)) (all []Reading, settings kernel.Dirty, err error) {
	ticker := time.NewTicker(Every(window))
	defer ticker.Stop()
	for began := time.Now(); ; {
		r, d, err := read(host, group)
		if err != nil {
			return all, d, err
		}
		r.At, settings = time.Since(began), d
		all = append(all, r)
		seen(r)
		if len(all) > 1 && (r.At >= window || len(all) > readingsMost || ctx.Err() != nil) {
			return all, settings, nil
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

func read(host kernel.FS, group *cgroupfs.Group) (r Reading, d kernel.Dirty, err error) {
	d, there, err := host.Dirty()
	if err != nil {
		return r, d, err
	}
	if !there {
		return r, d, fmt.Errorf("read %sdirty_*: there are none here", kernel.SettingsDir)
	}
	r.Host = Count{Dirty: d.Now, Writeback: d.InWriteback}
	if l, there := hostLevels(d); there {
		r.HostLevels = &l
	}
	if group == nil {
		return r, d, nil
	}
	m, there, err := group.Memory()
	if cgroupfs.IsGone(err) || err == nil && !there {
		return r, d, nil
	}
	if err != nil {
		return r, d, err
	}
	r.Group = &Count{Dirty: m.Dirty - m.Writeback, Writeback: m.Writeback}
	if group.Hierarchy().Version == cgroupfs.V1 {
		return r, d, nil // no threshold of its own: who is at the limit reclaims
	}
	room, err := headroomOf(*group)
	if cgroupfs.IsGone(err) {
		return r, d, nil
	}
	if err != nil {
		return r, d, err
	}
	if l, there := ownLevels(d, m, room); there {
		r.OwnLevels = &l
	}
	return r, d, nil
}
