// Package apitest has values of the core, for tests of documents and of text.
package apitest

import (
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
)

// Proof is a proof of two places with a row of each verdict.
func Proof() prove.Proof {
	sda, sdb := blkdev.Device{Node: "/dev/sda", Number: blkdev.Number{Major: 8}}, blkdev.Device{Node: "/dev/sdb", Number: blkdev.Number{Major: 8, Minor: 16}}
	write := limit.Limit{}.With(limit.WBPS, limit.PerSecond(10e6))
	read := limit.Limit{}.With(limit.RIOPS, limit.PerSecond(500))
	explained := &why.Report{Findings: []why.Finding{{Number: 1, Code: "writer-runs-ahead", Text: "memory takes the writes first"}, {Number: 2, Code: "foreign-inode", Text: "a file of others"}, {Number: 3, Code: "cached", Text: "nobody names it"}}}
	series := func(rate float64) prove.Series {
		return prove.Series{{At: 0, Total: rate}, {At: time.Second, Total: rate}, {At: 2 * time.Second, Total: rate}}
	}
	at := func(rate float64) prove.Seen { return prove.Seen{Rate: rate, Low: rate * 0.9, High: rate * 1.1} }
	return prove.Proof{
		Version: cgroupfs.V2, Kernel: "6.18.0",
		Spots: []prove.Spot{{Device: sda, Dir: "/data", FSType: "ext4", Limit: write}, {Device: sdb, Dir: "/run/scratch", Scratch: true, Limit: read}},
		Rows: []prove.Row{
			{Test: prove.Test{Path: load.Direct, Key: limit.WBPS, Rate: 10e6, Block: 65536, For: 3 * time.Second, Warm: time.Second}, Judgement: prove.Judgement{Verdict: prove.Held, Ratio: 1, Within: 0.012},
				Name: "direct write", Device: sda, Writer: at(10e6), Cgroup: at(10e6), Disk: at(10.1e6), Window: 3 * time.Second, Ops: 457.4, P50: time.Millisecond, P99: 2 * time.Millisecond, Max: 3 * time.Millisecond,
				Trace: prove.Trace{Writer: series(9e6), Cgroup: series(10e6), Device: series(11e6), From: 500 * time.Millisecond, To: 2 * time.Second}},
			{Test: prove.Test{Path: load.Buffered, Key: limit.WBPS, Rate: 10e6, Block: 65536, For: 2 * time.Second}, Judgement: prove.Judgement{Verdict: prove.HeldAtDevice, Ratio: 1.04, Within: 0.1},
				Name: "buffered write", Device: sda, Writer: at(200e6), Cgroup: at(10e6), Disk: at(10e6), Window: 2 * time.Second, Ops: 4570, Dirty: 300e6, Drain: 30 * time.Second, Findings: []int{1}, Warning: []string{"take care"}},
			{Test: prove.Test{Path: load.Direct, Key: limit.RIOPS, Rate: 500, Block: 4096, Random: true, For: 3 * time.Second}, Judgement: prove.Judgement{Verdict: prove.NotHeld, Reason: prove.Escaped, Ratio: 12.5, Within: 1},
				Name: "random direct read", Device: sdb, Writer: at(6250), Cgroup: at(0), Disk: at(6250), Window: 3 * time.Second, Ops: 20000, Findings: []int{2}, Why: "charged to others", Warning: []string{"a warning"}},
			{Test: prove.Test{Path: load.Mapped, Key: limit.WBPS, Rate: 500, For: 3 * time.Second}, Judgement: prove.Judgement{Verdict: prove.CannotTell, Reason: prove.Failed}, Name: "mapped write", Device: sdb, Why: "the load failed"},
		},
		Explained: explained,
		Took:      12345 * time.Millisecond,
	}
}

// Less is the proof of limits of which two were not tried.
func Less() prove.Proof {
	l := Proof()
	l.Spots, l.Rows, l.Explained = l.Spots[:1], l.Rows[:1], nil
	sda := l.Spots[0].Device
	l.Spots[0].Limit = l.Spots[0].Limit.With(limit.WIOPS, limit.PerSecond(50_000)).With(limit.RBPS, limit.PerSecond(10e6))
	l.Untried = []prove.Untried{{Device: sda, Key: limit.RBPS, Rate: 10e6, Why: "there is no time for a row of it", Remedy: fault.Remedy{Do: fault.AllRows}},
		{Device: sda, Key: limit.WIOPS, Rate: 50_000, Why: "with blocks of 512 bytes, the limit of 10 MB/s is reached first", Remedy: fault.Remedy{Do: fault.ProveAlone}}}
	return l
}

// Neighbour is the proof of what a limit does for another process.
func Neighbour() prove.Proof {
	n := Proof()
	n.Version, n.Spots, n.Rows = cgroupfs.V1, n.Spots[:1], n.Rows[:1]
	n.Phases = []prove.Phase{{Name: "alone", Reads: 12000.4, P50: 80 * time.Microsecond, P99: time.Millisecond, Max: 3 * time.Millisecond},
		{Name: "with the limit", Reads: 11000, P50: 90 * time.Microsecond, P99: 2 * time.Millisecond, Max: 3 * time.Millisecond, Hog: 10e6}}
	return n
}

// Observed is the proof of what a target did by itself.
func Observed() prove.Proof {
	o := Proof()
	o.Observed, o.Target = true, &targets.Target{Kind: "cgroup", Name: "/batch"}
	o.Rows, o.Spots = o.Rows[:1], o.Spots[:1]
	o.Rows[0].Path, o.Rows[0].Writer = "", prove.Seen{}
	return o
}
