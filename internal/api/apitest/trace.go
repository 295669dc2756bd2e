package apitest

import (
	"strings"
	"time"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/dirty"
	"github.com/weir-io/weir/internal/kernel"
	"github.com/weir-io/weir/internal/latency"
	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/trace"
)

// Trace is the trace of a group at its memory limit, which also flushes to a slow disk.
func Trace() trace.Traced {
	return trace.Traced{Target: "docker:web", SlowCount: 45, Report: trace.Report{
		Seconds: 10,
		Ops: []trace.OpsReport{
			{Kind: "write", Count: 12480, Errors: 3, Seconds: 0.9, P50: 31, P99: 212, Max: 9100,
				Split:    map[string]float64{"cpu": 0.5, "memcg_reclaim": 0.4},
				AboveP50: map[string]float64{"cpu": 0.003, "memcg_reclaim": 0.332, "dirty_throttling": 0.028, "blk_throttle": 0.008, "journal_locks": 0.012, "run_queue": 0.016, "other": 0.001},
				Verdict:  trace.Verdict{Of: "above_p50"}},
			{Kind: "fsync", Count: 7, Seconds: 1.6, P50: 204000, P99: 350000, Max: 350000,
				Split: map[string]float64{"device": 1.6}, Verdict: trace.Verdict{Of: "all"}},
		},
		Behind: []trace.BehindReport{{Direction: "write", Requests: 1204, Bytes: 818_000_000, ThrottleSeconds: new(80.6), QueueSeconds: 0.12, DeviceSeconds: 1.5, TotalMost: 1.52e6}},
		Advice: []trace.Advice{{Code: "memory", Text: "The group is at its memory limit."}},
		Slow: []trace.Slow{{After: 1.25, Kind: "fsync", PID: 4711, Process: "postgres", File: "/data/pg_wal/0001", Took: 350000, Cause: "device"},
			{After: 0.5, Kind: "write", PID: 4712, Process: "a\x1b[2J", File: "x\ny", Bytes: 65536, Took: 9100, Cause: "memcg_reclaim"}},
		Files: []trace.File{{File: "/data/pg_wal/0001", Kind: "fsync", Count: 7, Seconds: 1.6, Max: 350000, Cause: "device"},
			{File: "/data/base/1", Kind: "write", Count: 12480, Bytes: 818_000_000, Seconds: 0.9, Max: 9100, Cause: "cpu"}},
		Missing: []trace.Missing{{Hook: "fentry of the block throttle", Reason: "operation not permitted; kprobe: " + strings.Repeat("x", 300), Without: "weir infers a wait in blk-throttle from what the throttle last released for the same group and disk; for background I/O it is not known"}},
		Lost:    trace.Lost{Events: 1200},
	}}
}

// Latency are one without a limit, one with, and one past the page cache; each write of
// the second takes twice as long, half of it for reclaim.
func Latency() latency.Report {
	r := latency.Report{Kernel: "6.18.0", Dir: "/data", Version: cgroupfs.V2, Size: 1000 * latency.Block, Memory: 1 << 30}
	for i, run := range []latency.Run{{}, {Memory: 1 << 30}, {Memory: 1 << 30, Direct: true}} {
		took := time.Duration(i+1) * time.Millisecond
		var split trace.Split
		for n := range int64(1000) {
			at := 5 + n*int64(took)
			run.Writes = append(run.Writes, load.Timing{At: at, Took: took})
			if n%10 == 0 {
				run.Splits = append(run.Splits, latency.Moment{At: at, Writes: uint64(n), Split: split})
			}
			split[trace.CPU] += 1e6
			split[trace.MemcgReclaim] += uint64(took) - 1e6
		}
		run.Splits = append(run.Splits, latency.Moment{At: 5 + 1000*int64(took), Writes: 1000, Split: split})
		r.Runs = append(r.Runs, run)
	}
	return r
}

// Dirty is a report of a host whose dirty pages pass the threshold.
func Dirty() dirty.Report {
	l := &dirty.Levels{Background: 10e6, Throttle: 15e6, Limit: 20e6}
	var all []dirty.Reading
	for i := range 20 {
		all = append(all, dirty.Reading{At: time.Duration(i) * 100 * time.Millisecond, Host: dirty.Count{Dirty: uint64(i) * 1e6, Writeback: 2e6}, HostLevels: l})
	}
	return dirty.Report{Kernel: "6.18.0", Target: &target.Target{Kind: "docker", Name: "web"}, NoGroup: "no mounted cgroup hierarchy has the memory controller",
		Settings: kernel.Dirty{BackgroundRatio: 10, Bytes: 20e6, BackgroundAt: 10e6, LimitAt: 20e6, Expire: 30 * time.Second, Writeback: 0},
		Bounded:  []kernel.Bounded{{Name: "sda", MaxPercent: 5, MaxBytes: 1e6, MinPercent: 1, Strict: true}}, Readings: all}
}
