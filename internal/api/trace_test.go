package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/trace"
	"github.com/weir-io/weir/lab"
)

// The document has lists, and not null, where there is nothing.
func TestTraceDocument(t *testing.T) {
	lab.Unit(t)
	var s trace.Snapshot
	b, err := json.Marshal(TraceOf(trace.Traced{Report: s.Report(&s, []trace.Kind{trace.Write})}))
	if err != nil {
		t.Fatal(err)
	}
	// What is not known of memory and dirty pages is null.
	if strings.Count(string(b), "null") != 2 {
		t.Errorf("%s", b)
	}
}
