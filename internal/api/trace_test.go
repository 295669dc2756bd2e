package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/dirty"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/lab"
)

// The document has lists, and not null, where there is nothing.
func TestTraceDocument(t *testing.T) {
	lab.Unit(t)
	s := trace.Snapshot{Lost: trace.Lost{MissedKnown: true}}
	b, err := json.Marshal(TraceOf(trace.Traced{Report: s.Report(&s, []trace.Kind{trace.Write})}))
	if err != nil {
		t.Fatal(err)
	}
	// What is not known of memory and dirty pages is null.
	if strings.Count(string(b), "null") != 2 {
		t.Errorf("%s", b)
	}
}

// What weir could not find out is null, and neither 0 nor nothing.
func TestTraceDocumentOfTheUnknown(t *testing.T) {
	lab.Unit(t)
	s := trace.Snapshot{MemcgUnseen: true, DirectUnseen: true}
	b, err := json.Marshal(TraceOf(trace.Traced{Report: s.Report(&trace.Snapshot{}, nil), NoLimits: errors.New("gone")}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"reclaim":{"memcg_calls":null,"memcg_bytes":null,"direct_calls":null,"direct_bytes":null}`, `"limits":null,"paced":null`, `"missed":null`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s\nwant %s in it", b, want)
		}
	}
}

func TestDirtyDocumentOfTheUnknown(t *testing.T) {
	lab.Unit(t)
	b, err := json.Marshal(DirtyOf(dirty.Report{Readings: []dirty.Reading{{}}, Bounded: []kernel.Bounded{{Name: "8:16"}}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"levels":null,"share_of_limit":null,"throttled_readings":null,"readings":1`, `"max_bytes":null`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s\nwant %s in it", b, want)
		}
	}
}
