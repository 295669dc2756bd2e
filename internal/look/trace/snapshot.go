package trace

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
)

// A Snapshot is what a trace has counted from its start up to a moment.
type Snapshot struct {
	After time.Duration // since the trace began
	Ops   [Kinds]Ops
	// Behind is I/O charged to the target that none of its operations waits for, by direction:
	// reads, writes. It is known only for groups.
	Behind [2]Behind
	// ThrottleUnseen says that weir does not know what the throttle holds of background I/O.
	ThrottleUnseen bool
	// Reclaims within operations: for a memory cgroup's limit, and for the host.
	MemcgReclaims, DirectReclaims Reclaims
	MemcgUnseen, DirectUnseen     bool // the kernel does not tell of them
	Lost                          Lost
}

// Ops are operations of one kind.
type Ops struct {
	Histogram Histogram
	Bytes     uint64 // as the calls returned
	Errors    uint64 // calls that failed
	Most      time.Duration
	Unseen    Unseen
}

// Unseen are operations that were not fully traced: the kernel skipped a program where they
// began, where they ended, or in between. No other figure includes them.
type Unseen struct {
	Count uint64
	Time  time.Duration // at least
}

func (u Unseen) minus(before Unseen) Unseen {
	return Unseen{u.Count - min(u.Count, before.Count), max(u.Time-before.Time, 0)}
}

// Behind is background I/O, mostly writeback. Times are sums over requests.
type Behind struct {
	Requests, Bytes         uint64
	Throttle, Queue, Device time.Duration
	ThrottleMost, TotalMost time.Duration
}

// Reclaims are calls of reclaim, and what they freed.
type Reclaims struct {
	Calls, Pages uint64
}

// Lost is what the trace did not see.
type Lost struct {
	Tasks  uint64 // operations of tasks for which there was no room
	IOs    uint64 // I/Os in flight for which there was no room
	Events uint64 // slow operations that were not read in time
	Stacks uint64 // sleeps whose reason the kernel did not tell
	Files  uint64 // operations on files for which there was no room
	Missed uint64 // how often the kernel left a program of the trace out, for any process
	// MissedKnown says that the kernel told how often that was; what is not known is 0.
	MissedKnown bool
}

// Any reports whether anything was lost.
func (l Lost) Any() bool {
	l.MissedKnown = false
	return l != Lost{}
}

// Snapshot reads the counts.
func (t *Tracer) Snapshot() (s Snapshot, err error) {
	s.After = time.Since(t.Began)
	s.ThrottleUnseen = slices.Contains(t.instead, traceVarHeldUnseen)
	s.MemcgUnseen, s.DirectUnseen = slices.Contains(t.absent, traceProgMemcgReclaimed), slices.Contains(t.absent, traceProgDirectReclaimed)
	for k := range Kinds {
		if s.Ops[k], err = t.Ops(k); err != nil {
			return s, err
		}
	}
	for i := range s.Behind {
		b, err := sumOf[behind](t.maps[traceMapBehinds], uint32(i), addBehind)
		if err != nil {
			return s, err
		}
		s.Behind[i] = Behind{Requests: b.Count, Bytes: b.Bytes, Throttle: time.Duration(b.Throttle), Queue: time.Duration(b.Queue),
			Device: time.Duration(b.Device), ThrottleMost: time.Duration(b.ThrottleMost), TotalMost: time.Duration(b.TotalMost)}
	}
	for i, to := range []*Reclaims{&s.MemcgReclaims, &s.DirectReclaims} {
		r, err := sumOf(t.maps[traceMapReclaims], uint32(i), func(a *reclaimed, b reclaimed) { a.Calls += b.Calls; a.Pages += b.Pages })
		if err != nil {
			return s, err
		}
		*to = Reclaims(r)
	}
	l, err := sumOf(t.maps[traceMapLosses], 0, func(a *lost, b lost) {
		a.Tasks += b.Tasks
		a.Bios += b.Bios
		a.Events += b.Events
		a.Stacks += b.Stacks
		a.Files += b.Files
	})
	if err != nil {
		return s, err
	}
	s.Lost = Lost{Tasks: l.Tasks, IOs: l.Bios, Events: l.Events, Stacks: l.Stacks, Files: l.Files}
	missed, known, err := t.missed()
	s.Lost.Missed, s.Lost.MissedKnown = missed, known
	for k := range s.Ops {
		if known || !t.countsMissed {
			s.Ops[k].Unseen = s.Ops[k].Unseen.within(missed)
		}
	}
	return s, err
}

// within limits the number of operations that were not fully traced to the number of programs
// that the kernel skipped: seccomp and tracers can make a call end that never began.
func (u Unseen) within(missed uint64) Unseen {
	if missed == 0 {
		return Unseen{}
	}
	u.Count = min(u.Count, missed)
	return u
}

func addBehind(a *behind, b behind) {
	a.Count += b.Count
	a.Bytes += b.Bytes
	a.Throttle += b.Throttle
	a.Queue += b.Queue
	a.Device += b.Device
	a.ThrottleMost = max(a.ThrottleMost, b.ThrottleMost)
	a.TotalMost = max(a.TotalMost, b.TotalMost)
}

// Ops reads the counts of one kind only, which costs a fraction of a Snapshot.
func (t *Tracer) Ops(k Kind) (o Ops, err error) {
	for i := range bucketsMax {
		c, err := sumOf(t.maps[traceMapCells], uint32(k)*bucketsMax+uint32(i), func(a *cell, b cell) {
			a.Count += b.Count
			a.Bytes += b.Bytes
			a.Errors += b.Errors
			a.Most = max(a.Most, b.Most)
			a.Parts = a.Parts.Plus(b.Parts)
		})
		if err != nil {
			return o, err
		}
		o.Histogram[i] = Cell{c.Count, c.Parts}
		o.Bytes += c.Bytes
		o.Errors += c.Errors
		o.Most = max(o.Most, time.Duration(c.Most))
	}
	u, err := sumOf(t.maps[traceMapUnseens], uint32(k), func(a *unseen, b unseen) { a.Count += b.Count; a.NS += b.NS })
	o.Unseen = Unseen{u.Count, time.Duration(u.NS)}
	return o, err
}

// sumOf adds up one entry's values of all processors.
func sumOf[T any](m *ebpf.Map, key uint32, add func(*T, T)) (sum T, err error) {
	var each []T
	if err := m.Lookup(key, &each); err != nil {
		return sum, fmt.Errorf("read the trace: %w", err)
	}
	for _, v := range each {
		add(&sum, v)
	}
	return sum, nil
}

// text converts a C string.
func text(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}
