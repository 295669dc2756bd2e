package api

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
)

// figureMost bounds each figure that was read, so that none can be too large to be shown.
const figureMost = 1e18

// figure is a figure that another program has written: at least 0, and not endless.
func figure(v float64) float64 {
	if v > 0 {
		return min(v, figureMost)
	}
	return 0
}

func figurePtr(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return figure(*v), true
}

func seconds(v float64) time.Duration {
	return time.Duration(math.Round(min(figure(v), math.MaxInt64/2e9) * 1e9))
}

func ratesOf(r *watch.Rates) *watch.Rates {
	if r == nil {
		return nil
	}
	return &watch.Rates{RBPS: figure(r.RBPS), WBPS: figure(r.WBPS), RIOPS: figure(r.RIOPS), WIOPS: figure(r.WIOPS)}
}

// Snapshot makes the snapshot that the document is of, without its groups.
func (t Top) Snapshot() (*watch.Snapshot, error) {
	v := cgroupfs.Version(t.Version)
	if v != cgroupfs.V1 && v != cgroupfs.V2 {
		return nil, fmt.Errorf("cgroup_version: %d", t.Version)
	}
	s := &watch.Snapshot{At: t.Time, Window: seconds(t.WindowSeconds), Version: v, Watched: max(t.Watched, 0), Unread: max(t.Unread, 0), Pressure: t.Pressure.read()}
	if t.Unreadable != "" {
		s.Unreadable = errors.New(t.Unreadable)
	}
	for _, d := range t.Disks {
		s.Disks = append(s.Disks, watch.Disk{Number: d.Number, Node: d.Device, Below: below(d.Below), Total: blkdev.Activity{Counters: d.Total, InFlight: d.InFlight},
			Rates: ratesOf(d.Rates), Use: min(figure(d.UsePercent), 100), Queue: figure(d.Queue)})
	}
	return s, nil
}

func below(all []blkdev.Number) []blkdev.Number {
	if len(all) == 0 {
		return nil
	}
	return all
}

func (p *TopPressure) read() *watch.Pressure {
	if p == nil {
		return nil
	}
	r := &watch.Pressure{Total: cgroupfs.Pressure{Some: seconds(p.SomeSeconds), Full: seconds(p.FullSeconds)}}
	r.Some, r.Known = figurePtr(p.SomePercent)
	r.Full, _ = figurePtr(p.FullPercent)
	return r
}

// Group makes the group that the document is of.
func (t TopGroup) Group() *watch.Group {
	g := &watch.Group{Path: t.Cgroup, Target: t.Target, Owner: t.Owner, Pressure: t.Pressure.read()}
	if t.Dirty != nil && t.Writeback != nil {
		g.Memory = &watch.Memory{Dirty: *t.Dirty, Writeback: *t.Writeback}
	}
	if p := t.Paced; p != nil {
		g.Paced = &watch.Paced{WBPS: p.WBPS, Escapes: p.Escapes, Lapsed: p.Lapsed, Missed: p.Missed}
		if total, known := figurePtr(p.PausedSeconds); known {
			g.Paused = &watch.Paused{Total: seconds(total)}
			g.Paused.Share, g.Paused.Known = figurePtr(p.PausedPercent)
		}
	}
	for _, d := range t.Devices {
		g.Devices = append(g.Devices, d.device())
	}
	return g
}

func (d TopDevice) device() watch.Device {
	one := watch.Device{Number: d.Number, Node: d.Device, Below: below(d.Below), Rates: ratesOf(d.Rates), Limit: d.Limit}
	if d.Total != nil {
		one.Total, one.Counted = *d.Total, true
	}
	if len(d.Expected) > 0 {
		one.Expected = &place.Expected{Placed: place.Placed{Device: blkdev.Device{Number: d.Number, Node: d.Device}, Limit: d.Limit},
			Expectation: place.ExpectationOf(d.Expected), Foreign: d.Foreign}
	}
	return one
}

// Verdict is what the document says was measured.
func (h AgentHeld) Verdict() held.Verdict {
	v := held.Verdict{State: stateOf(h.State), Since: timeAt(h.Since)}
	for _, l := range h.Limits {
		key, known := limit.KeyNamed(l.Rate)
		if !known {
			continue // of a newer weird
		}
		one := held.Limit{Device: l.Number, Node: l.Device, Key: key, PerSec: l.Limit, State: stateOf(l.State), Since: timeAt(l.Since), From: timeAt(l.From), To: timeAt(l.To), Why: l.Why}
		one.Rate, _ = figurePtr(l.Measured)
		v.Limits = append(v.Limits, one)
	}
	return v
}

func stateOf(text string) held.State {
	switch s := held.State(text); s {
	case held.Held, held.NotHeld:
		return s
	}
	return held.NotTold
}

func timeAt(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
