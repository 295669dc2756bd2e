package api

import (
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/trace"
)

// TraceOps is one kind of operation.
type TraceOps struct {
	Kind    string  `json:"kind"`
	Count   uint64  `json:"count"`
	Errors  uint64  `json:"errors"`
	Bytes   uint64  `json:"bytes"`
	Seconds float64 `json:"seconds"` // summed over operations
	P50     float64 `json:"p50_us"`
	P90     float64 `json:"p90_us"`
	P99     float64 `json:"p99_us"`
	P999    float64 `json:"p999_us"`
	Max     float64 `json:"max_us"`
	// Split is all their time by part, and AboveP50 the extra time of operations slower than
	// the median.
	Split    map[string]float64 `json:"split_seconds"`
	AboveP50 map[string]float64 `json:"above_p50_seconds"`
	Verdict  TraceVerdict       `json:"verdict"`
	Buckets  []TraceBucket      `json:"histogram"`
	Unseen   TraceUnseen        `json:"not_fully_seen"` // in no other figure
}

// TraceVerdict says where the time of one kind of operation went.
type TraceVerdict struct {
	Of      string       `json:"of"` // which time: "all" or "above_p50"
	Causes  []TraceCause `json:"causes"`
	Partial bool         `json:"partial"`
}

// TraceCause is a part with its share, from 0 to 1, of the verdict's time.
type TraceCause struct {
	Part  string  `json:"part"`
	Share float64 `json:"share"`
}

// TraceBucket is how many operations took between two times.
type TraceBucket struct {
	From  float64 `json:"from_us"`
	To    float64 `json:"to_us"`
	Count uint64  `json:"count"`
}

// TraceUnseen are operations that were not fully traced.
type TraceUnseen struct {
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds_min"` // they took at least so long
}

// TraceBehind is what went on in one direction that no operation waited for.
type TraceBehind struct {
	Direction string `json:"direction"` // "read" or "write"
	Requests  uint64 `json:"requests"`
	Bytes     uint64 `json:"bytes"`
	// ThrottleSeconds is summed over requests, as are the next two; null: not known.
	ThrottleSeconds *float64 `json:"blk_throttle_seconds"`
	QueueSeconds    float64  `json:"block_queue_seconds"`
	DeviceSeconds   float64  `json:"device_seconds"`
	ThrottleMost    *float64 `json:"blk_throttle_most_us"` // null: not known
	TotalMost       float64  `json:"most_us"`              // without the throttle's, where that is not known
}

// TraceSlow is one operation.
type TraceSlow struct {
	After   float64            `json:"after_seconds"` // when it began, since the trace did
	Kind    string             `json:"kind"`
	PID     int                `json:"pid"`
	TID     int                `json:"tid"`
	Process string             `json:"process"`
	File    string             `json:"file"`   // empty: none
	Device  blkdev.Number      `json:"device"` // of its file system
	Inode   uint64             `json:"inode"`
	Bytes   uint64             `json:"bytes"`
	Took    float64            `json:"took_us"`
	Cause   string             `json:"cause"` // the part that took most of it
	Split   map[string]float64 `json:"split_seconds"`
}

// TraceFile is what operations of one kind did with one file.
type TraceFile struct {
	File    string             `json:"file"`
	Device  blkdev.Number      `json:"device"` // of its file system
	Inode   uint64             `json:"inode"`
	Kind    string             `json:"kind"`
	Count   uint64             `json:"count"`
	Bytes   uint64             `json:"bytes"`
	Seconds float64            `json:"seconds"` // summed over operations
	Max     float64            `json:"max_us"`
	Cause   string             `json:"cause"` // the part that took most of it
	Split   map[string]float64 `json:"split_seconds"`
}

func traceOpsOf(o trace.OpsReport) TraceOps {
	return TraceOps{Kind: o.Kind.String(), Count: o.Count, Errors: o.Errors, Bytes: o.Bytes, Seconds: float64(o.Split.Sum()) / 1e9,
		P50: us(o.P50), P90: us(o.P90), P99: us(o.P99), P999: us(o.P999), Max: us(o.Max), Split: secondsOf(o.Split), AboveP50: secondsOf(o.AboveP50),
		Verdict: traceVerdictOf(o.Verdict),
		Buckets: list(o.Buckets, func(b trace.Bucket) TraceBucket { return TraceBucket{us(b.From), us(b.To), b.Count} }),
		Unseen:  TraceUnseen{o.Unseen.Count, o.Unseen.Time.Seconds()}}
}

func traceVerdictOf(v trace.Verdict) TraceVerdict {
	of := "above_p50"
	if v.All {
		of = "all"
	}
	return TraceVerdict{of, list(v.Causes, func(c trace.Cause) TraceCause { return TraceCause{c.Part.String(), c.Share} }), v.Partial}
}

func traceBehindOf(b trace.BehindReport) TraceBehind {
	doc := TraceBehind{Direction: b.Direction(), Requests: b.Requests, Bytes: b.Bytes, QueueSeconds: b.Queue.Seconds(), DeviceSeconds: b.Device.Seconds(), TotalMost: us(b.TotalMost)}
	if b.ThrottleKnown {
		throttle, most := b.Throttle.Seconds(), us(b.ThrottleMost)
		doc.ThrottleSeconds, doc.ThrottleMost = &throttle, &most
	}
	return doc
}

func traceSlowOf(s trace.Slow) TraceSlow {
	return TraceSlow{After: s.After.Seconds(), Kind: s.Kind.String(), PID: s.PID, TID: s.TID, Process: s.Process, File: s.File, Device: s.Device, Inode: s.Inode,
		Bytes: s.Bytes, Took: us(s.Took), Cause: s.Cause().String(), Split: nonzero(s.Split)}
}

func traceFileOf(f trace.File) TraceFile {
	return TraceFile{File: f.File, Device: f.Device, Inode: f.Inode, Kind: f.Kind.String(), Count: f.Count, Bytes: f.Bytes,
		Seconds: float64(f.Split.Sum()) / 1e9, Max: us(f.Max), Cause: f.Cause().String(), Split: nonzero(f.Split)}
}
