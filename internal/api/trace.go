package api

import (
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/trace"
)

// A Trace is weir trace's document.
type Trace struct {
	Schema
	Target    string         `json:"target"` // empty: the whole host
	Seconds   float64        `json:"seconds"`
	Ops       []TraceOps     `json:"operations"` // of the kinds that were asked for and were seen
	Behind    []TraceBehind  `json:"behind"`     // by direction, as far as there was any
	Reclaim   TraceReclaim   `json:"reclaim"`
	Evidence  TraceEvidence  `json:"evidence"`
	Advice    []TraceAdvice  `json:"advice"`
	Open      []TraceSlow    `json:"open"`    // operations that had not ended
	Slow      []TraceSlow    `json:"slow"`    // with a threshold: those that took longer
	Files     []TraceFile    `json:"files"`   // when asked for
	Missing   []TraceMissing `json:"missing"` // hooks that the kernel does not have, or refuses
	Lost      TraceLost      `json:"lost"`
	SlowCount uint64         `json:"slow_count"` // of Slow only the slowest are listed
}

// TraceReclaim is how often operations reclaimed memory, and what they freed.
type TraceReclaim struct {
	MemcgCalls  *uint64 `json:"memcg_calls"` // null, with the bytes: not known
	MemcgBytes  *uint64 `json:"memcg_bytes"`
	DirectCalls *uint64 `json:"direct_calls"` // null, with the bytes: not known
	DirectBytes *uint64 `json:"direct_bytes"`
}

// TraceEvidence is what was read about the host and the target during the trace.
type TraceEvidence struct {
	Memory *TraceMemory `json:"memory"` // null: none is bound, or known
	Dirty  *TraceDirty  `json:"dirty"`  // null: not known
	Limits []TraceLimit `json:"limits"` // null: not known
	Paced  *bool        `json:"paced"`  // null: not known
}

// TraceLimit is a limit on the I/O to one device.
type TraceLimit struct {
	Node   string        `json:"device"`
	Device blkdev.Number `json:"number"`
	Limit  limit.Limit   `json:"limit"`
}

// TraceMemory is a group's memory when it was fullest; bytes.
type TraceMemory struct {
	Group string `json:"cgroup"`
	Max   uint64 `json:"max"`  // 0: none
	High  uint64 `json:"high"` // 0: none
	Used  uint64 `json:"used"`
	Cache uint64 `json:"cache"`
	Dirty uint64 `json:"dirty"`
}

// TraceDirty is the most data in the host's memory that waited for its disks; bytes.
type TraceDirty struct {
	Now          uint64 `json:"dirty"`
	Writeback    uint64 `json:"writeback"`
	BackgroundAt uint64 `json:"background_threshold"`
	LimitAt      uint64 `json:"threshold"`
}

// TraceAdvice is what a cause means, and what to do.
type TraceAdvice struct {
	Code string `json:"code"` // the part's name
	Text string `json:"text"`
}

// TraceMissing is a hook that is not available.
type TraceMissing struct {
	Hook    string `json:"hook"`
	Reason  string `json:"reason"`
	Without string `json:"without"` // what is not told
}

// TraceLost is what the trace did not see.
type TraceLost struct {
	Tasks  uint64  `json:"tasks"`
	IOs    uint64  `json:"ios"`
	Events uint64  `json:"events"`
	Stacks uint64  `json:"stacks"`
	Files  uint64  `json:"files"`
	Missed *uint64 `json:"missed"` // null: not known
}

// TraceOf makes the document of a trace.
func TraceOf(t trace.Traced) Trace {
	return Trace{Schema: SchemaOf("trace"), Target: t.Target, Seconds: t.Took.Seconds(), Ops: list(t.Ops, traceOpsOf), Behind: list(t.Behind, traceBehindOf),
		Reclaim: traceReclaimOf(t.Reclaim), Evidence: traceEvidenceOf(t.Evidence, t.NoLimits == nil),
		Advice: list(t.Advice, func(a trace.Advice) TraceAdvice { return TraceAdvice(a) }),
		Open:   list(t.Open, traceSlowOf), Slow: list(t.Slow, traceSlowOf), Files: list(t.Files, traceFileOf), Missing: missingOf(t.Missing),
		Lost: traceLostOf(t.Lost), SlowCount: t.SlowCount}
}

// known is a figure, or null where it is not known.
func known[T any](value T, is bool) *T {
	if !is {
		return nil
	}
	return &value
}

func traceReclaimOf(r trace.Reclaim) TraceReclaim {
	return TraceReclaim{known(r.MemcgCalls, r.MemcgKnown), known(r.MemcgBytes, r.MemcgKnown), known(r.DirectCalls, r.DirectKnown), known(r.DirectBytes, r.DirectKnown)}
}

func traceLostOf(l trace.Lost) TraceLost {
	return TraceLost{Tasks: l.Tasks, IOs: l.IOs, Events: l.Events, Stacks: l.Stacks, Files: l.Files, Missed: known(l.Missed, l.MissedKnown)}
}

// traceEvidenceOf makes the document of what was read beside a trace. Limits that could not all
// be read are not known.
func traceEvidenceOf(e trace.Evidence, limits bool) TraceEvidence {
	doc := TraceEvidence{Limits: list(e.Limits, func(l trace.DeviceLimit) TraceLimit { return TraceLimit(l) }), Paced: known(e.Paced, e.Paced || limits)}
	if !limits {
		doc.Limits = nil
	}
	if m := e.Memory; m != nil {
		memory := TraceMemory(*m)
		doc.Memory = &memory
	}
	if d := e.Dirty; d != nil {
		doc.Dirty = &TraceDirty{d.Now, d.Writeback, d.BackgroundAt, d.LimitAt}
	}
	return doc
}

func missingOf(all []trace.Missing) []TraceMissing {
	return list(all, func(m trace.Missing) TraceMissing { return TraceMissing(m) })
}

// us is a time in microseconds.
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// secondsOf is a split's time by part, in seconds, of all parts.
func secondsOf(s trace.Split) map[string]float64 {
	m := map[string]float64{}
	for p, ns := range s {
		m[trace.Part(p).String()] = float64(ns) / 1e9
	}
	return m
}

// nonzero is secondsOf without the parts that have no time.
func nonzero(s trace.Split) map[string]float64 {
	m := map[string]float64{}
	for p, ns := range s {
		if ns > 0 {
			m[trace.Part(p).String()] = float64(ns) / 1e9
		}
	}
	return m
}
