package api

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/internal/look/latency"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/lab"
)

func TestLatencyDocument(t *testing.T) {
	lab.Unit(t)
	r := apitest.Latency()
	r.Runs[0].NoTrace = "the kernel has no type information"
	r.Runs[1].Trace = &trace.Report{Ops: []trace.OpsReport{{Split: trace.Split{trace.CPU: 2e9}}}}
	doc := LatencyOf(r, latency.Words(r.Runs, time.Duration.String))
	if len(doc.Runs) != 3 || doc.Runs[0].Memory != nil || *doc.Runs[1].Memory != 1<<30 || doc.Runs[0].Trace != nil || doc.Runs[0].Untraced == "" {
		t.Fatalf("%+v", doc)
	}
	run := doc.Runs[1]
	if run.Count != 1000 || run.P99 != 2000 || run.Trace.Seconds != 2 || len(run.Slots) != latency.SlotsMost || run.Slots[95].Bytes != 1000*latency.Block {
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
	if len(doc.Words) == 0 || doc.Schema != SchemaOf("trace.latency") {
		t.Errorf("%q, %q", doc.Words, doc.Schema)
	}
}
