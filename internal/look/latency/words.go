package latency

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/trace"
)

// alike is how much longer a write may take for two runs to count as the same.
const alike = 1.25

// Words say what the runs show, a sentence each, and then what helps.
func Words(runs []Run, text func(time.Duration) string) []string {
	if len(runs) < 2 || len(runs[0].Writes) == 0 || len(runs[1].Writes) == 0 {
		return stops(runs)
	}
	free, bound := runs[0].Summary(), runs[1].Summary()
	memory := limit.FormatSize(runs[1].Memory)
	words := []string{fmt.Sprintf("p50 %s, p99 %s without a memory limit; p50 %s, p99 %s with %s", text(free.P50), text(free.P99), text(bound.P50), text(bound.P99), memory)}
	longer := func(bound, free time.Duration) bool { return float64(bound) > alike*float64(free) }
	slower := longer(bound.P50, free.P50) || longer(bound.P99, free.P99) || longer(bound.Mean, free.Mean)
	if !slower {
		words[0] += ": the memory limit makes no difference here"
	}
	if share := causes(runs[1]); share != "" {
		words = append(words, "with "+memory+", "+share)
	}
	if share := causes(runs[0]); share != "" && waits(runs[0]) {
		words = append(words, "without a memory limit, "+share)
	}
	words = append(words, stops(runs)...)
	if t := runs[1].Trace; t != nil && t.Reclaim.MemcgCalls > 0 {
		words = append(words, fmt.Sprintf("with %s, writes had to free %s of page cache themselves, in %d calls of reclaim, to make room for their data", memory,
			limit.FormatMeasured(float64(t.Reclaim.MemcgBytes)), t.Reclaim.MemcgCalls))
	}
	return append(words, advice(runs, slower, text)...)
}

// causes are the parts that a run's verdict names: "of the time above p50, 83 % is memcg
// reclaim".
func causes(r Run) string {
	if r.Trace == nil || len(r.Trace.Ops) == 0 {
		return ""
	}
	v := r.Trace.Ops[0].Verdict
	var parts []string
	for _, c := range v.Causes {
		parts = append(parts, fmt.Sprintf("%.0f %% is %s", 100*c.Share, c.Part.Title()))
	}
	if len(parts) == 0 {
		return ""
	}
	of := "of the time above p50, "
	if v.All {
		of = "of all time, "
	}
	return of + strings.Join(parts, ", ")
}

// waits reports whether a run's writes have waited for anything but a processor.
func waits(r Run) bool {
	return slices.ContainsFunc(r.Trace.Ops[0].Verdict.Causes, func(c trace.Cause) bool {
		return c.Part != trace.CPU && c.Part != trace.RunQueue
	})
}

func stops(runs []Run) []string {
	var words []string
	for _, r := range runs {
		if r.Stopped != "" {
			words = append(words, fmt.Sprintf("%s: after %d writes %s", r.Name(), len(r.Writes), r.Stopped))
		}
	}
	return words
}

// advice is what ends the difference: room for the page cache, or none of it.
func advice(runs []Run, slower bool, text func(time.Duration) string) []string {
	var words []string
	if slower {
		words = append(words, fmt.Sprintf("to end this, set a memory limit that leaves room for the written data (%s here) beside the program's own memory. Or use direct I/O, which needs no page cache",
			limit.FormatSize(uint64(len(runs[0].Writes))*Block)))
	}
	if len(runs) < 3 || len(runs[2].Writes) == 0 {
		return words
	}
	direct := runs[2].Summary()
	bound := runs[1].Summary()
	return append(words, fmt.Sprintf("direct I/O under the same limit: p50 %s (buffered: %s), p99 %s (buffered: %s): each write waits for the disk, none waits for memory",
		text(direct.P50), text(bound.P50), text(direct.P99), text(bound.P99)))
}
