package watch

import (
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Snapshot is what a Watcher saw at one time. Nothing of it changes later, so it can be shared.
type Snapshot struct {
	At      time.Time
	Window  time.Duration // since the snapshot before, which rates are over; 0: it is the first
	Version cgroupfs.Version
	Groups  []*Group // those with I/O or limits, in the order of their paths
	Disks   []Disk   // those that the groups did I/O on or have limits on, in the order of their numbers
	// Pressure is for how long any task of the host waited for I/O; nil: the kernel does not say.
	Pressure *Pressure
	// Watched is how many groups there are, with those that never did any I/O.
	Watched int
	// Unread is how many groups or disks could not be read, and Unreadable why the first could
	// not; what of them was known before is still shown.
	Unread     int
	Unreadable error
}

// A Group is a group with its I/O on each device.
type Group struct {
	Path    string
	Target  string // as a user spells it: unit:nginx.service
	Owner   targets.Owner
	InPod   targets.InPod // the container of a Kubernetes pod that it is; the zero value: it is none
	Devices []Device      // in the order of their numbers
	// Pressure is for how long the group's tasks waited for I/O, child groups included; nil: the
	// kernel does not say, as on v1.
	Pressure *Pressure
	// Memory is what of the group's page cache waits to be written; nil: the kernel does not say.
	Memory *Memory
	// Paced is what weir's pacer holds of the group; nil: nothing.
	Paced *Paced
	// Paused is for how long the pacer has paused the group; nil: it does not hold the group, or does
	// not say.
	Paused *Paused
}

// Limited reports whether the group has a limit on a device.
func (g *Group) Limited() bool {
	for i := range g.Devices { // a Device is large, and this is asked of thousands a second
		if g.Devices[i].Limit.Bounds() {
			return true
		}
	}
	return false
}

// Sum adds up the rates of all devices. What went through one device to another below it is counted
// once, although the kernel charges it on both. Known is false if no device has any.
func (g *Group) Sum() (sum Rates, known bool) {
	for i := range g.Devices {
		d := &g.Devices[i]
		if d.Rates == nil {
			continue
		}
		own := *d.Rates
		for j := range g.Devices {
			if upper := &g.Devices[j]; upper.Rates != nil && slices.Contains(upper.Below, d.Number) {
				own = own.less(*upper.Rates)
			}
		}
		sum, known = sum.plus(own), true
	}
	return sum, known
}

// Nearest returns the device, and the rate there, that is nearest to its limit, in percent of the
// limit. Known is false if no limit's percentage is known.
func (g *Group) Nearest() (nearest Device, k limit.Key, percent float64, known bool) {
	at := 0
	for i := range g.Devices {
		for _, key := range limit.Keys {
			if p, is := g.Devices[i].Percent(key); is && (!known || p > percent) {
				at, k, percent, known = i, key, p, true
			}
		}
	}
	if known {
		nearest = g.Devices[at]
	}
	return nearest, k, percent, known
}

// A Device is a device with what one group did on it. On v2 that includes the groups below.
type Device struct {
	Number blkdev.Number
	Node   string // "/dev/vda"
	// Below are the disks that the device stands on directly, as a volume does. Most of what is
	// done on it is done, and charged, there again.
	Below []blkdev.Number
	// Total is what the kernel has charged to the group since it was made. Counted is false if
	// the kernel counts nothing for the device.
	Total   cgroupfs.Stat
	Counted bool
	// Rates are over the snapshot's window; nil: not known, because it is the first reading of
	// the group or its counters went back.
	Rates *Rates
	// Limit is the group's own rule; the zero Limit: it has none. On v2 the rules of the groups
	// above bind it too.
	Limit limit.Limit
	// Expected is what is expected to hold the limit; nil: there is none, or it is not known yet.
	Expected *place.Expected
}

// Percent is a rate in percent of its limit. Known is false if there is no limit, or no rate.
func (d *Device) Percent(k limit.Key) (percent float64, known bool) {
	n, bound := d.Limit.Get(k).Number()
	if !bound || d.Rates == nil {
		return 0, false
	}
	return 100 * d.Rates.Get(k) / float64(n), true
}

// Holders are the mechanisms that are expected to hold a rate's limit, each once, in the order of
// direct, synchronous, mapped and buffered writes. All is false if one of these is not held.
func (d Device) Holders(k limit.Key) (by []place.Mechanism, all bool) {
	if _, bound := d.Limit.Get(k).Number(); !bound || d.Expected == nil {
		return nil, false
	}
	e := d.Expected
	paths := []place.By{e.Direct, e.Sync, e.Mapped, e.Buffered}
	switch {
	case k.IsRead():
		paths = []place.By{e.Read}
	case e.Foreign != nil:
		paths = append(paths, *e.Foreign)
	}
	all = true
	for _, p := range paths {
		switch {
		case p.Mechanism == place.Nothing, p.Mechanism == place.Pacer && k.IsOps(): // the pacer counts bytes
			all = false
		case !slices.Contains(by, p.Mechanism):
			by = append(by, p.Mechanism)
		}
	}
	return by, all
}

// Pressure is for how long tasks waited for I/O.
type Pressure struct {
	Total cgroupfs.Pressure
	// Some and Full are the shares of the time since the reading before, in percent; Known is
	// false if there was none.
	Some, Full float64
	Known      bool
}

// Memory is what of a group's page cache waits to be written, in bytes; Dirty includes Writeback.
type Memory struct{ Dirty, Writeback uint64 }

// Paced is what weir's pacer holds of a group.
type Paced struct {
	WBPS    uint64 // bytes a second
	Escapes bool   // only what the kernel charges to other groups, with the group's own (v2)
	Lapsed  string // why it holds nothing, though it was asked to; empty: it holds
	Missed  string // which processes it cannot pause, or what it cannot count, and why
}

// Paused is for how long weir's pacer has paused a group to hold its limit.
type Paused struct {
	Total time.Duration // a pacer that takes over counts from 0
	// Share is that of the time since the pacer was asked before, in percent; Known is false if it
	// was not, or if another pacer has taken over.
	Share float64
	Known bool
}

// A Disk is a device with what all did on it.
type Disk struct {
	Number blkdev.Number
	Node   string
	Below  []blkdev.Number // see Device
	Total  blkdev.Activity
	Rates  *Rates // nil: not known
	// Use is the share of the window in which the device had I/O in flight, in percent, and Queue
	// how many I/Os were in flight on average; 0 without Rates. A device that serves many I/Os
	// at once can do more at 100 %.
	Use, Queue float64
}

// plus adds two groups of rates.
func (r Rates) plus(o Rates) Rates {
	return Rates{RBPS: r.RBPS + o.RBPS, WBPS: r.WBPS + o.WBPS, RIOPS: r.RIOPS + o.RIOPS, WIOPS: r.WIOPS + o.WIOPS}
}

// less takes other rates off, down to 0.
func (r Rates) less(o Rates) Rates {
	return Rates{RBPS: max(0, r.RBPS-o.RBPS), WBPS: max(0, r.WBPS-o.WBPS), RIOPS: max(0, r.RIOPS-o.RIOPS), WIOPS: max(0, r.WIOPS-o.WIOPS)}
}

// ratesOf makes rates of two readings. It returns nil if there is no time between them or a
// counter went back: the group was made anew, or its counters were reset.
func ratesOf(now, was cgroupfs.Stat, between time.Duration) *Rates {
	if between <= 0 || now.ReadBytes < was.ReadBytes || now.WrittenBytes < was.WrittenBytes || now.Reads < was.Reads || now.Writes < was.Writes {
		return nil
	}
	s := between.Seconds()
	return &Rates{
		RBPS:  perSecond(now.ReadBytes, was.ReadBytes, s),
		WBPS:  perSecond(now.WrittenBytes, was.WrittenBytes, s),
		RIOPS: perSecond(now.Reads, was.Reads, s),
		WIOPS: perSecond(now.Writes, was.Writes, s),
	}
}

// pressureOf makes shares of time of two readings.
func pressureOf(now cgroupfs.Pressure, was *cgroupfs.Pressure, between time.Duration) *Pressure {
	p := &Pressure{Total: now}
	if was == nil || between <= 0 || now.Some < was.Some || now.Full < was.Full {
		return p
	}
	share := func(d time.Duration) float64 { return min(100, 100*d.Seconds()/between.Seconds()) }
	p.Some, p.Full, p.Known = share(now.Some-was.Some), share(now.Full-was.Full), true
	return p
}

// pausedOf makes a share of the time of two answers.
func pausedOf(now time.Duration, was *Paused, between time.Duration) *Paused {
	p := &Paused{Total: now}
	if was == nil || between <= 0 || now < was.Total {
		return p
	}
	p.Share, p.Known = min(100, 100*(now-was.Total).Seconds()/between.Seconds()), true
	return p
}

// diskOf makes a disk of two readings.
func diskOf(n blkdev.Number, node string, now blkdev.Activity, was *blkdev.Activity, between time.Duration) Disk {
	d := Disk{Number: n, Node: node, Total: now}
	if was == nil || now.Busy < was.Busy || now.Waited < was.Waited {
		return d
	}
	if d.Rates = ratesOf(statOf(now), statOf(*was), between); d.Rates != nil {
		d.Use = min(100, 100*(now.Busy-was.Busy).Seconds()/between.Seconds())
		d.Queue = (now.Waited - was.Waited).Seconds() / between.Seconds()
	}
	return d
}

func statOf(a blkdev.Activity) cgroupfs.Stat {
	return cgroupfs.Stat{ReadBytes: a.ReadBytes, WrittenBytes: a.WrittenBytes, Reads: a.Reads, Writes: a.Writes}
}
