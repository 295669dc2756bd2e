package api

import (
	"math"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
)

// A Proof is weir prove's document.
type Proof struct {
	Schema
	Target   *string       `json:"target"` // null: a group that weir made for the measurement
	Cgroup   *string       `json:"cgroup"`
	Version  int           `json:"cgroup_version"`
	Kernel   string        `json:"kernel"`
	Observed bool          `json:"observed"`
	Verdict  prove.Verdict `json:"verdict"`
	Rows     []ProofRow    `json:"rows"`
	Untried  []UntriedRate `json:"untried"`
	Asked    string        `json:"asked"` // the command that explains the findings
	Findings []Finding     `json:"findings"`
	Phases   []ProofPhase  `json:"neighbour"`
}

// An UntriedRate is a limit that no row has tried.
type UntriedRate struct {
	Device    string        `json:"device"`
	Number    blkdev.Number `json:"number"`
	Direction string        `json:"direction"`
	Unit      string        `json:"unit"`
	Limit     uint64        `json:"limit"`
	Why       string        `json:"why"`
	Do        fault.Do      `json:"do"`
}

// A ProofRow is one kind of I/O, measured.
type ProofRow struct {
	Device     string        `json:"device"`
	Number     blkdev.Number `json:"number"`
	Name       string        `json:"name"`
	Path       load.Path     `json:"path,omitempty"`
	Direction  string        `json:"direction"`
	Unit       string        `json:"unit"`
	Limit      uint64        `json:"limit"`
	Random     bool          `json:"random"`
	Depth      int           `json:"depth"`
	Block      int           `json:"block_bytes"`
	Window     float64       `json:"window_seconds"`
	Warm       float64       `json:"left_out_seconds"`
	Operations float64       `json:"operations"`
	Writer     ProofRate     `json:"writer"`
	Charged    ProofRate     `json:"cgroup"`
	Disk       ProofRate     `json:"disk"`
	Others     float64       `json:"others"`
	Ratio      *float64      `json:"ratio"`
	Within     *float64      `json:"ratio_within"`
	Verdict    prove.Verdict `json:"verdict"`
	Reason     prove.Reason  `json:"reason,omitempty"`
	Why        string        `json:"why,omitempty"`
	Warnings   []string      `json:"warnings"`
	Findings   []int         `json:"findings"`
	Dirty      int64         `json:"dirty_bytes"`
	Drain      float64       `json:"drain_seconds"`
	P50        float64       `json:"p50_seconds"`
	P99        float64       `json:"p99_seconds"`
	Max        float64       `json:"max_seconds"`
}

// A ProofRate is a rate per second: over the window, and the lowest and the highest of any second
// of it.
type ProofRate struct {
	Rate float64 `json:"rate"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A ProofPhase is what a neighbour got of the disk for a while.
type ProofPhase struct {
	Name  string  `json:"name"`
	Reads float64 `json:"reads_per_second"`
	P50   float64 `json:"p50_seconds"`
	P99   float64 `json:"p99_seconds"`
	Max   float64 `json:"max_seconds"`
	Hog   float64 `json:"hog"` // bytes or operations per second
}

// ProofOf makes the document of a proof. asked is the command that explains its findings.
func ProofOf(p prove.Proof, asked string) Proof {
	doc := Proof{Schema: SchemaOf("prove"), Version: int(p.Version), Kernel: p.Kernel, Observed: p.Observed, Verdict: p.Verdict(),
		Rows: list(p.Rows, proofRowOf), Asked: asked,
		Untried: list(p.Untried, func(u prove.Untried) UntriedRate {
			return UntriedRate{u.Device.Node, u.Device.Number, u.Key.Direction(), unitOf(u.Key), u.Rate, u.Why, u.Remedy.Do}
		}), Findings: list(p.Findings(), findingOf),
		Phases: list(p.Phases, func(one prove.Phase) ProofPhase {
			return ProofPhase{one.Name, one.Reads, one.P50.Seconds(), one.P99.Seconds(), one.Max.Seconds(), one.Hog}
		})}
	if p.Target != nil {
		name, group := p.Target.String(), p.Target.Group.Path()
		doc.Target, doc.Cgroup = &name, &group
	}
	return doc
}

func proofRowOf(row prove.Row) ProofRow {
	r := ProofRow{Device: row.Device.Node, Number: row.Device.Number, Name: row.Name, Path: row.Path, Direction: row.Key.Direction(), Unit: unitOf(row.Key),
		Limit: row.Rate, Random: row.Random, Depth: max(1, row.Depth), Block: row.Block, Window: row.Window.Seconds(), Warm: row.Warm.Seconds(),
		Operations: math.Round(row.Ops), Writer: ProofRate(row.Writer), Charged: ProofRate(row.Cgroup), Disk: ProofRate(row.Disk), Others: row.Others,
		Verdict: row.Verdict, Reason: row.Reason, Why: row.Why, Warnings: append([]string{}, row.Warning...), Findings: append([]int{}, row.Findings...),
		Dirty: row.Dirty, Drain: row.Drain.Seconds(), P50: row.P50.Seconds(), P99: row.P99.Seconds(), Max: row.Max.Seconds()}
	if row.Window > 0 {
		r.Ratio = &row.Ratio
		if !math.IsInf(row.Within, 0) && !math.IsNaN(row.Within) {
			r.Within = &row.Within
		}
	}
	return r
}

func unitOf(k limit.Key) string {
	if k.IsOps() {
		return "operations"
	}
	return "bytes"
}
