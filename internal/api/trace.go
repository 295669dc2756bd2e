package api

import "github.com/weir-io/weir/internal/trace"

// A Trace is weir trace's document.
type Trace struct {
	Schema
	Target string `json:"target"` // empty: the whole host
	trace.Report
	// SlowCount is how many operations took longer than the threshold: of them the slowest
	// are listed.
	SlowCount uint64 `json:"slow_count"`
}

// TraceOf makes the document of a trace.
func TraceOf(t trace.Traced) Trace {
	return Trace{Schema: SchemaOf("trace"), Target: t.Target, Report: t.Report, SlowCount: t.SlowCount}
}
