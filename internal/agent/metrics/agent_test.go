package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/look/watch"
)

// What weird run has counted is on the page, and nothing of it where it does not answer.
func TestAgentCounts(t *testing.T) {
	c := agent.Counts{Drifts: 5, Repaired: 4, Failures: 3, Missed: 2, Applied: reconcile.Applied{Count: 9, Sum: 90 * time.Millisecond}}
	c.Applied.Within[0], c.Applied.Within[3] = 1, 7 // and one that took longer than all bounds
	asked := error(nil)
	o := Options{Feed: NewFeed(&still{s: &watch.Snapshot{}}, 0), Agent: func(ctx context.Context) (api.AgentCounts, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a scrape waits for weird run without a bound")
		}
		return api.AgentCountsOf(c), asked
	}}
	_, text := get(t, o.Handler(), Route)
	p := parse(t, text)
	for series, want := range map[string]float64{"weir_agent_drifts_total{}": 5, "weir_agent_drift_repaired_total{}": 4, "weir_agent_failures_total{}": 3,
		"weir_agent_missed_events_total{}": 2, "weir_agent_apply_seconds{}": 9} {
		if got, is := p[series]; !is || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, is, want)
		}
	}
	for _, line := range []string{`weir_agent_apply_seconds_bucket{le="0.001"} 1`, `weir_agent_apply_seconds_bucket{le="0.01"} 8`, `weir_agent_apply_seconds_bucket{le="30"} 8`,
		`weir_agent_apply_seconds_bucket{le="+Inf"} 9`, "weir_agent_apply_seconds_sum 0.09", "weir_agent_apply_seconds_count 9"} {
		if !strings.Contains(string(text), line+"\n") {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
	asked = errors.New("weird does not run")
	if _, text = get(t, o.Handler(), Route); strings.Contains(string(text), "weir_agent_drift") || !strings.Contains(string(text), "weir_agent_groups") {
		t.Errorf("without an answer:\n%s", text)
	}
}
