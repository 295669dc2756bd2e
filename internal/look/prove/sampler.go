package prove

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
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
	// Gone is when the group was found to be removed; 0 if it was not.
	Gone time.Duration
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
	if n := len(out.Cgroup.Bytes); err != nil && n > 0 { // it keeps what it has done
		bytes, ops = uint64(out.Cgroup.Bytes[n-1].Total), uint64(out.Cgroup.Ops[n-1].Total)
		if out.Gone == 0 {
			out.Gone = at
		}
	}
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
		others, err := s.others.read(s.device, s.read)
		if err != nil {
			return err
		}
		out.Others.add(now(), others.bytes, others.ops)
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
	of   cgroupfs.Group
	seen map[string]counts // by path, the last ones: a group that ends keeps its own
}

type counts struct{ bytes, ops uint64 }

// siblingsOf returns nil on v1, whose counters know neither writeback nor devices that
// never had a rule.
func siblingsOf(g cgroupfs.Group) (*siblings, error) {
	if g.Hierarchy().Version == cgroupfs.V1 {
		return nil, nil
	}
	s := &siblings{of: g, seen: map[string]counts{}}
	_, err := s.list()
	return s, err
}

// list finds those that there are now.
func (s *siblings) list() ([]cgroupfs.Group, error) {
	var all []cgroupfs.Group
	for g := s.of; !g.IsRoot(); g = g.Parent() {
		beside, err := g.Parent().Children()
		if err != nil && !cgroupfs.IsGone(err) {
			return nil, fmt.Errorf("list the groups beside %s: %w", g.Path(), err)
		}
		for _, b := range beside {
			if b.Path() != g.Path() {
				all = append(all, b)
			}
		}
	}
	return all, nil
}

func (s *siblings) read(dev blkdev.Number, read bool) (all counts, err error) {
	groups, err := s.list()
	if err != nil {
		return all, err
	}
	for _, g := range groups {
		if stats, err := g.Stats(); err == nil { // it may have ended, or have no io
			c, _ := of(stats, dev)
			bytes, ops := direction(c, read)
			was := s.seen[g.Path()]
			s.seen[g.Path()] = counts{max(bytes, was.bytes), max(ops, was.ops)}
		}
	}
	for _, c := range s.seen {
		all.bytes, all.ops = all.bytes+c.bytes, all.ops+c.ops
	}
	return all, nil
}
