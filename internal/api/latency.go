package api

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/latency"
)

// A Latency is the document of weir trace --latency.
type Latency struct {
	Schema
	Directory string          `json:"directory"`
	Chain     string          `json:"chain"`
	Version   int             `json:"cgroup_version"`
	Kernel    string          `json:"kernel"`
	Size      uint64          `json:"size_bytes"`
	Block     int             `json:"block_bytes"`
	Memory    uint64          `json:"memory_bytes"`
	Devices   []LatencyDevice `json:"devices"`
	Runs      []LatencyRun    `json:"runs"`
	Words     []string        `json:"words"`
}

// A LatencyDevice is a device with the limit of all runs.
type LatencyDevice struct {
	Device string        `json:"device"`
	Number blkdev.Number `json:"number"`
	Limit  limit.Limit   `json:"limit"`
}

// A LatencyRun is one copy.
type LatencyRun struct {
	Name      string         `json:"name"`
	Direct    bool           `json:"direct"`
	Memory    *uint64        `json:"memory_bytes"`
	Stopped   string         `json:"stopped"`
	Count     int            `json:"count"`
	Seconds   float64        `json:"seconds"`
	Rate      float64        `json:"bytes_per_second"`
	Mean      float64        `json:"mean_us"`
	P50       float64        `json:"p50_us"`
	P90       float64        `json:"p90_us"`
	P99       float64        `json:"p99_us"`
	P999      float64        `json:"p999_us"`
	Max       float64        `json:"max_us"`
	Slots     []LatencySlot  `json:"slots"`
	Untraced  string         `json:"untraced"`
	Trace     *LatencyTrace  `json:"trace"`
	SplitOver []LatencySplit `json:"split_over_time"`
}

// A LatencySlot is a stretch of a copy.
type LatencySlot struct {
	From  float64 `json:"from_seconds"`
	To    float64 `json:"to_seconds"`
	Bytes int64   `json:"bytes"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Max   float64 `json:"max_us"`
}

// A LatencyTrace is where the time of a run's writes went.
type LatencyTrace struct {
	Seconds  float64            `json:"seconds"`
	Split    map[string]float64 `json:"split_seconds"`
	AboveP50 map[string]float64 `json:"above_p50_seconds"`
	Verdict  TraceVerdict       `json:"verdict"`
	Reclaim  TraceReclaim       `json:"reclaim"`
	Missing  []TraceMissing     `json:"missing"`
	Lost     TraceLost          `json:"lost"`
}

// A LatencySplit is where the time of writes went for a while.
type LatencySplit struct {
	From   float64            `json:"from_seconds"`
	To     float64            `json:"to_seconds"`
	Writes uint64             `json:"writes"`
	Split  map[string]float64 `json:"split_seconds"`
}

// LatencyOf makes the document of an experiment. words say what its runs show
// (latency.Words).
func LatencyOf(r latency.Report, words []string) Latency {
	doc := Latency{Schema: SchemaOf("trace.latency"), Directory: r.Dir, Chain: r.Chain.String(), Version: int(r.Version), Kernel: r.Kernel,
		Size: r.Size, Block: latency.Block, Memory: r.Memory, Devices: []LatencyDevice{}, Words: append([]string{}, words...)}
	for _, p := range r.Places {
		doc.Devices = append(doc.Devices, LatencyDevice{p.Device.Node, p.Device.Number, p.Limit})
	}
	for _, run := range r.Runs {
		doc.Runs = append(doc.Runs, latencyRunOf(run))
	}
	return doc
}

func latencyRunOf(run latency.Run) LatencyRun {
	s := run.Summary()
	j := LatencyRun{Name: run.Name(), Direct: run.Direct, Stopped: run.Stopped, Count: s.Count, Seconds: s.Elapsed.Seconds(), Rate: s.BytesPerSec(), Mean: us(s.Mean),
		P50: us(s.P50), P90: us(s.P90), P99: us(s.P99), P999: us(s.P999), Max: us(s.Max), Slots: []LatencySlot{}, SplitOver: []LatencySplit{}, Untraced: run.NoTrace}
	if run.Memory != 0 {
		j.Memory = &run.Memory
	}
	for _, slot := range run.Slots(latency.SlotsMost) {
		j.Slots = append(j.Slots, LatencySlot{slot.From.Seconds(), slot.To.Seconds(), slot.Bytes, us(slot.P50), us(slot.P99), us(slot.Max)})
	}
	if run.Trace == nil {
		return j
	}
	t := &LatencyTrace{Verdict: TraceVerdict{Causes: []TraceCause{}}, Reclaim: traceReclaimOf(run.Trace.Reclaim), Missing: missingOf(run.Trace.Missing), Lost: traceLostOf(run.Trace.Lost),
		Split: map[string]float64{}, AboveP50: map[string]float64{}}
	if len(run.Trace.Ops) > 0 {
		o := traceOpsOf(run.Trace.Ops[0])
		t.Seconds, t.Split, t.AboveP50, t.Verdict = o.Seconds, o.Split, o.AboveP50, o.Verdict
	}
	j.Trace = t
	for _, slot := range run.SplitSlots(latency.SlotsMost) {
		j.SplitOver = append(j.SplitOver, LatencySplit{slot.From.Seconds(), slot.To.Seconds(), slot.Writes, nonzero(slot.Split)})
	}
	return j
}
