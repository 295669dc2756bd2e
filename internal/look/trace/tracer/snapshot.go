package tracer

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/weir-io/weir/internal/look/trace"
)

// Snapshot reads the counts.
func (t *Tracer) Snapshot() (s trace.Snapshot, err error) {
	s.After = time.Since(t.Began)
	s.ThrottleUnseen = slices.Contains(t.instead, traceVarHeldUnseen)
	s.MemcgUnseen, s.DirectUnseen = slices.Contains(t.absent, traceProgMemcgReclaimed), slices.Contains(t.absent, traceProgDirectReclaimed)
	for k := range trace.Kinds {
		if s.Ops[k], err = t.Ops(k); err != nil {
			return s, err
		}
	}
	for i := range s.Behind {
		b, err := sumOf[behind](t.maps[traceMapBehinds], uint32(i), addBehind)
		if err != nil {
			return s, err
		}
		s.Behind[i] = trace.Behind{Requests: b.Count, Bytes: b.Bytes, Throttle: time.Duration(b.Throttle), Queue: time.Duration(b.Queue),
			Device: time.Duration(b.Device), ThrottleMost: time.Duration(b.ThrottleMost), TotalMost: time.Duration(b.TotalMost)}
	}
	for i, to := range []*trace.Reclaims{&s.MemcgReclaims, &s.DirectReclaims} {
		r, err := sumOf(t.maps[traceMapReclaims], uint32(i), func(a *reclaimed, b reclaimed) { a.Calls += b.Calls; a.Pages += b.Pages })
		if err != nil {
			return s, err
		}
		*to = trace.Reclaims(r)
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
	s.Lost = trace.Lost{Tasks: l.Tasks, IOs: l.Bios, Events: l.Events, Stacks: l.Stacks, Files: l.Files}
	missed, known, err := t.missed()
	s.Lost.Missed, s.Lost.MissedKnown = missed, known
	for k := range s.Ops {
		if known || !t.countsMissed {
			s.Ops[k].Unseen = within(s.Ops[k].Unseen, missed)
		}
	}
	return s, err
}

// within limits the number of operations that were not fully traced to the number of programs
// that the kernel skipped: seccomp and tracers can make a call end that never began.
func within(u trace.Unseen, missed uint64) trace.Unseen {
	if missed == 0 {
		return trace.Unseen{}
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
func (t *Tracer) Ops(k trace.Kind) (o trace.Ops, err error) {
	for i := range trace.Buckets {
		c, err := sumOf(t.maps[traceMapCells], uint32(k)*trace.Buckets+uint32(i), func(a *cell, b cell) {
			a.Count += b.Count
			a.Bytes += b.Bytes
			a.Errors += b.Errors
			a.Most = max(a.Most, b.Most)
			a.Parts = a.Parts.Plus(b.Parts)
		})
		if err != nil {
			return o, err
		}
		o.Histogram[i] = trace.Cell{Count: c.Count, Parts: c.Parts}
		o.Bytes += c.Bytes
		o.Errors += c.Errors
		o.Most = max(o.Most, time.Duration(c.Most))
	}
	u, err := sumOf(t.maps[traceMapUnseens], uint32(k), func(a *unseen, b unseen) { a.Count += b.Count; a.NS += b.NS })
	o.Unseen = trace.Unseen{Count: u.Count, Time: time.Duration(u.NS)}
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
