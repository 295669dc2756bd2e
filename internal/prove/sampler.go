package prove

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/limit"
)

// every is how often counters are read.
const every = 100 * time.Millisecond

// A Reading is two counters of one direction over time.
type Reading struct{ Bytes, Ops Series }

// of returns the one that a limit bounds.
func (r Reading) of(k limit.Key) Series {
	if k.IsOps() {
		return r.Ops
	}
	return r.Bytes
}

func (r *Reading) add(at time.Duration, bytes, ops uint64) {
	r.Bytes = r.Bytes.add(at, float64(bytes))
	r.Ops = r.Ops.add(at, float64(ops))
}

// largest is the largest mean size of a request over a step: large requests come in
// bursts, so some step has few others.
func (r Reading) largest() float64 {
	most := 0.0
	for i := 1; i < min(len(r.Bytes), len(r.Ops)); i++ {
		if ops := r.Ops[i].Total - r.Ops[i-1].Total; ops > 0 {
			most = max(most, (r.Bytes[i].Total-r.Bytes[i-1].Total)/ops)
		}
	}
	return most
}

// Samples are what one device did over time, in one direction.
type Samples struct {
	Cgroup, Device Reading
	// Others were charged to other groups, if that can be known (v2).
	Others  Reading
	Counted bool // the group has a counter for the device
	// Late is the sum of how late a canary woke that had nothing to do but wake.
	Late Series
}

// A sampler reads the counters of a group and of a device.
type sampler struct {
	group   cgroupfs.Group
	device  blkdev.Number
	devices blkdev.FS
	read    bool
	others  *siblings
}

// run samples until the context ends.
func (s sampler) run(ctx context.Context) (*Samples, error) {
	out := &Samples{}
	canary := newCanary()
	defer canary.stop()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := s.sample(out); err != nil {
			return out, err
		}
		out.Late = out.Late.add(now(), canary.late().Seconds())
		select {
		case <-ctx.Done():
			return out, s.sample(out)
		case <-ticker.C:
		}
	}
}

func (s sampler) sample(out *Samples) error {
	stats, err := s.group.Stats()
	if err != nil && !cgroupfs.IsGone(err) {
		return fmt.Errorf("read what %s is charged: %w", s.group.Path(), err)
	}
	at := now()
	c, counted := of(stats, s.device)
	out.Counted = out.Counted || counted
	bytes, ops := direction(c, s.read)
	out.Cgroup.add(at, bytes, ops)
	d, err := s.devices.Counters(s.device)
	if err != nil {
		return err
	}
	if s.read {
		out.Device.add(now(), d.ReadBytes, d.Reads)
	} else {
		out.Device.add(now(), d.WrittenBytes, d.Writes)
	}
	if s.others != nil {
		bytes, ops := s.others.read(s.device, s.read)
		out.Others.add(now(), bytes, ops)
	}
	return nil
}

func of(stats []cgroupfs.Stat, dev blkdev.Number) (cgroupfs.Stat, bool) {
	for _, s := range stats {
		if s.Device == dev {
			return s, true
		}
	}
	return cgroupfs.Stat{}, false
}

func direction(s cgroupfs.Stat, read bool) (bytes, ops uint64) {
	if read {
		return s.ReadBytes, s.Reads
	}
	return s.WrittenBytes, s.Writes
}

// siblings are the groups of a v2 hierarchy that are neither a group nor above it nor
// below it: what they are charged (io.stat counts with the groups below) is not its.
type siblings struct {
	groups []cgroupfs.Group
	seen   map[string]uint64 // the last counts, so that a group that ends keeps its own
	ops    map[string]uint64
}

// siblingsOf returns nil on v1, whose counters know neither writeback nor devices that
// never had a rule.
func siblingsOf(g cgroupfs.Group) (*siblings, error) {
	if g.Hierarchy().Version == cgroupfs.V1 {
		return nil, nil
	}
	s := &siblings{seen: map[string]uint64{}, ops: map[string]uint64{}}
	for ; !g.IsRoot(); g = g.Parent() {
		beside, err := g.Parent().Children()
		if err != nil {
			return nil, fmt.Errorf("list the groups beside %s: %w", g.Path(), err)
		}
		for _, b := range beside {
			if b.Path() != g.Path() {
				s.groups = append(s.groups, b)
			}
		}
	}
	return s, nil
}

func (s *siblings) read(dev blkdev.Number, read bool) (bytes, ops uint64) {
	for _, g := range s.groups {
		if stats, err := g.Stats(); err == nil { // it may have ended, or have no io
			c, _ := of(stats, dev)
			b, o := direction(c, read)
			s.seen[g.Path()], s.ops[g.Path()] = max(b, s.seen[g.Path()]), max(o, s.ops[g.Path()])
		}
		bytes, ops = bytes+s.seen[g.Path()], ops+s.ops[g.Path()]
	}
	return bytes, ops
}
