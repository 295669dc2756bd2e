package apitest

import (
	"strings"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/dirty"
	"github.com/weir-io/weir/internal/look/latency"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/targets"
)

// Trace is the trace of a group at its memory limit, which also flushes to a slow disk.
func Trace() trace.Traced {
	const us, ms = time.Microsecond, time.Millisecond
	sda := blkdev.Number{Major: 8}
	return trace.Traced{Target: "docker:web", SlowCount: 45, Report: trace.Report{
		Took: 10 * time.Second,
		Ops: []trace.OpsReport{
			{Kind: trace.Write, Count: 12480, Errors: 3, Bytes: 1000, P50: 31 * us, P90: 100 * us, P99: 212 * us, P999: 5 * ms, Max: 9100 * us,
				Split: trace.Split{trace.CPU: 500e6, trace.MemcgReclaim: 400e6},
				AboveP50: trace.Split{trace.CPU: 3e6, trace.MemcgReclaim: 332e6, trace.DirtyThrottle: 28e6, trace.BlkThrottle: 8e6, trace.Journal: 12e6,
					trace.RunQueue: 16e6, trace.Other: 1e6},
				Verdict: trace.Verdict{Causes: []trace.Cause{{Part: trace.MemcgReclaim, Share: 0.83}}},
				Buckets: []trace.Bucket{{From: 28 * us, To: 32 * us, Count: 12480}}},
			{Kind: trace.Fsync, Count: 7, P50: 204 * ms, P99: 350 * ms, Max: 350 * ms, Split: trace.Split{trace.DeviceTime: 1600e6}, Verdict: trace.Verdict{All: true}},
		},
		Behind: []trace.BehindReport{{Write: true, Requests: 1204, Bytes: 818_000_000, ThrottleKnown: true, Throttle: 80600 * ms, Queue: 120 * ms, Device: 1500 * ms,
			ThrottleMost: 1510 * ms, TotalMost: 1520 * ms}},
		Reclaim: trace.Reclaim{MemcgCalls: 1, MemcgBytes: 2, DirectCalls: 3, DirectBytes: 4, MemcgKnown: true, DirectKnown: true},
		Evidence: trace.Evidence{Paced: true, Memory: &trace.Memory{Group: "/web", Max: 5, High: 4, Used: 3, Cache: 2, Dirty: 1}, Dirty: &trace.Dirty{Now: 1, Writeback: 2, BackgroundAt: 3, LimitAt: 4},
			Limits: []trace.DeviceLimit{{Node: "/dev/sda", Device: sda, Limit: limit.Limit{}.With(limit.WBPS, limit.PerSecond(7))}}},
		Advice: []trace.Advice{{Code: "memory", Text: "The group is at its memory limit."}},
		Slow: []trace.Slow{{After: 1250 * ms, Kind: trace.Fsync, PID: 4711, TID: 4712, Process: "postgres", File: "/data/pg_wal/0001", Device: sda, Inode: 7, Took: 350 * ms, Split: trace.Split{trace.DeviceTime: 350e6}},
			{After: 500 * ms, Kind: trace.Write, PID: 4712, Process: "a\x1b[2J", File: "x\ny", Bytes: 65536, Took: 9100 * us, Split: trace.Split{trace.MemcgReclaim: 9100e3}}},
		Files: []trace.File{{File: "/data/pg_wal/0001", Kind: trace.Fsync, Count: 7, Max: 350 * ms, Split: trace.Split{trace.DeviceTime: 1600e6}},
			{File: "/data/base/1", Kind: trace.Write, Count: 12480, Bytes: 818_000_000, Max: 9100 * us, Split: trace.Split{trace.CPU: 500e6, trace.MemcgReclaim: 400e6}}},
		Missing: []trace.Missing{{Hook: "fentry of the block throttle", Reason: "operation not permitted; kprobe: " + strings.Repeat("x", 300), Without: "weir infers a wait in blk-throttle from what the throttle last released for the same group and disk; for background I/O it is not known"}},
		Lost:    trace.Lost{Events: 1200, MissedKnown: true},
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
	return dirty.Report{Kernel: "6.18.0", Target: &targets.Target{Kind: "docker", Name: "web"}, NoGroup: "no mounted cgroup hierarchy has the memory controller",
		Settings: kernel.Dirty{BackgroundRatio: 10, Bytes: 20e6, BackgroundAt: 10e6, LimitAt: 20e6, Expire: 30 * time.Second, Writeback: 0},
		Bounded:  []kernel.Bounded{{Name: "sda", MaxPercent: 5, MaxBytes: 1e6, MinPercent: 1, Strict: true}}, Readings: all}
}
