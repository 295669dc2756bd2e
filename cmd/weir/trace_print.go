package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/trace"
)

// printTrace writes a report for people.
func (a *app) printTrace(doc traceDocument) {
	for _, o := range doc.Ops {
		a.out.Print("%-6s %d calls   p50 %s   p99 %s   max %s", o.Kind, o.Count, micros(o.P50), micros(o.P99), micros(o.Max))
		for p := range trace.Parts {
			name := p.String()
			if o.Split[name] > 0 {
				a.out.Print("  %-18s %8.3f s %8.3f s", p.Title(), o.Split[name], o.AboveP50[name])
			}
		}
		var words []string
		for _, c := range o.Verdict.Causes {
			words = append(words, fmt.Sprintf("%s %.0f %%", c.Part, 100*c.Share))
		}
		a.out.Print("  of %s: %s", o.Verdict.Of, strings.Join(words, ", "))
	}
	for _, m := range doc.Missing {
		a.out.Say("missing: %s: %s (%s)", m.Hook, m.Without, m.Reason)
	}
}

// micros writes a latency.
func micros(us float64) string {
	d := time.Duration(us * float64(time.Microsecond))
	switch {
	case d < 10*time.Millisecond && d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", us)
	}
	return cli.Duration(d)
}
