package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/latency"
	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/internal/plot"
	"github.com/weir-io/weir/internal/trace"
	"github.com/weir-io/weir/lab"
)

// someRuns are one without a limit, one with, and one past the page cache; each write of
// the second takes twice as long, half of it for reclaim.
func someRuns() latencyReport {
	r := latencyReport{dir: "/data", version: cgroupfs.V2, flags: &latencyFlags{sizeBytes: 1000 * latency.Block, memoryBytes: 1 << 30, direct: true}}
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
		r.runs = append(r.runs, run)
	}
	return r
}

func TestLatencyOnATerminal(t *testing.T) {
	lab.Unit(t)
	text := latencyText(someRuns())
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > latencyColumns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"○ no memory limit   ● memory 1 GiB   ◆ direct, memory 1 GiB", "memory 1 GiB: share of its writes' time over 2.0 s",
		"  page cache, CPU   " + strings.Repeat("▄", 54) + "  50 %", "  memcg reclaim     " + strings.Repeat("▄", 54) + "  50 %", "62.5 MiB"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestLatencyIsDrawn(t *testing.T) {
	lab.Unit(t)
	r := someRuns()
	r.runs[2].Splits = nil // not traced
	var b bytes.Buffer
	if err := drawLatency(&b, r); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	for want, n := range map[string]int{"p99 of a write": 1, "no memory limit: where the time of writes went": 1, "memory 1 GiB: where the time of writes went": 1,
		plot.PartColour(int(trace.MemcgReclaim)): 2, plot.PartColour(int(trace.Frozen)): 0, ">100 %<": 2} { // a colour: its area, and its mark
		if got := strings.Count(s, want); got != n {
			t.Errorf("%q is there %d times, want %d", want, got, n)
		}
	}
}

func TestLatencyDocument(t *testing.T) {
	lab.Unit(t)
	r := someRuns()
	r.runs[0].NoTrace = "the kernel has no type information"
	r.runs[1].Trace = &trace.Report{Ops: []trace.OpsReport{{Seconds: 2}}}
	doc := latencyDocumentOf(r)
	if len(doc.Runs) != 3 || doc.Runs[0].Memory != nil || *doc.Runs[1].Memory != 1<<30 || doc.Runs[0].Trace != nil || doc.Runs[0].Untraced == "" {
		t.Fatalf("%+v", doc)
	}
	run := doc.Runs[1]
	if run.Count != 1000 || run.P99 != 2000 || run.Trace.Seconds != 2 || len(run.Slots) != latencySlots || run.Slots[95].Bytes != 1000*latency.Block {
		t.Errorf("%+v", run)
	}
	writes := uint64(0)
	for _, s := range run.SplitOver {
		writes += s.Writes
		if s.Split["cpu"] != s.Split["memcg_reclaim"] || len(s.Split) != 2 {
			t.Errorf("split %v", s.Split)
		}
	}
	if writes != 1000 {
		t.Errorf("%d writes in the splits", writes)
	}
	if len(doc.Words) == 0 || doc.Schema != cli.SchemaOf("trace.latency") {
		t.Errorf("%q, %q", doc.Words, doc.Schema)
	}
}
