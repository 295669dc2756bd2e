package metrics

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/linux/blkdev"
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

// What only weird run knows of a group is on the page: a pod's plan, and whether its limits are held. What was measured here
// counts first.
func TestTargetsOfWeirdRun(t *testing.T) {
	disk, now := blkdev.Number{Major: 8}, time.Now()
	s := &watch.Snapshot{At: now, Groups: []*watch.Group{
		{Path: "/a", Devices: []watch.Device{{Number: disk, Node: "/dev/sda"}}}, {Path: "/b", Devices: []watch.Device{{Number: disk, Node: "/dev/sda"}}},
	}}
	at := func(ago time.Duration) *time.Time { then := now.Add(-ago); return &then }
	limit := func(rate, state string, to *time.Time) api.AgentLimit {
		return api.AgentLimit{Number: disk, Rate: rate, State: state, To: to}
	}
	g := gathering{all: true, snapshot: s, measured: map[limitOf]bool{{"/b", disk, "write"}: true}}
	g.addTargets([]api.AgentTarget{
		{Target: "pod:prod/a", Group: "/a", Plan: "annotations", State: inForce, Held: api.AgentHeld{Limits: []api.AgentLimit{
			limit("wbps", "held", at(0)), limit("wiops", "not-held", at(time.Second)), limit("rbps", "held", at(time.Second)), limit("riops", "not-told", nil)}}},
		{Target: "pod:prod/b", Group: "/b", Plan: "small", State: "failed", Held: api.AgentHeld{Limits: []api.AgentLimit{
			limit("wbps", "not-held", at(0)), limit("rbps", "held", at(measuredMost+time.Second)), limit("riops", "held", at(-time.Hour)), limit("apples", "held", at(0))}}},
		{Target: "pod:prod/c", Plan: "small", State: inForce},
	})
	want := map[limitOf]bool{{"/a", disk, "write"}: false, {"/a", disk, "read"}: true, {"/b", disk, "write"}: true}
	if !maps.Equal(g.measured, want) {
		t.Errorf("%v, want %v", g.measured, want)
	}
	if want := map[string]string{"/a": "annotations"}; !maps.Equal(g.plans, want) {
		t.Errorf("%v, want %v", g.plans, want)
	}
	asked := false
	o := Options{Feed: NewFeed(&still{s: s}, 0), Targets: func(ctx context.Context) ([]api.AgentTarget, error) {
		_, asked = ctx.Deadline()
		return nil, errors.New("weird does not run")
	}}
	if _, text := get(t, o.Handler(), Route); !asked || !strings.Contains(string(text), "weir_agent_groups") {
		t.Errorf("asked with a bound: %v\n%s", asked, text)
	}
}

// What the pacer has done is on the page for groups that it holds, and nothing of it where it does not
// answer.
func TestPacerSums(t *testing.T) {
	disk := blkdev.Number{Major: 8}
	s := &watch.Snapshot{Groups: []*watch.Group{
		{Path: "/a", Paced: &watch.Paced{WBPS: 5}, Devices: []watch.Device{{Number: disk, Node: "/dev/sda"}}}, {Path: "/b", Paced: &watch.Paced{WBPS: 5}},
		{Path: "/c", Paced: &watch.Paced{Lapsed: "its group is gone"}},
	}}
	asked := error(nil)
	o := Options{Feed: NewFeed(&still{s: s}, 0), Pacer: func(most time.Duration) ([]pacer.Sum, error) {
		if most <= 0 || most > 2*time.Second {
			t.Errorf("a scrape waits %s for the pacer", most)
		}
		return []pacer.Sum{
			{Limited: pacer.Place{Path: "/a"}, Paused: 1500 * time.Millisecond, Escaped: map[blkdev.Number]uint64{disk: 7, {Major: 9}: 8}},
			{Limited: pacer.Place{Path: "/c"}, Paused: time.Second}, {Limited: pacer.Place{Path: "/gone"}, Paused: time.Second},
		}, asked
	}}
	_, text := get(t, o.Handler(), Route)
	p := parse(t, text)
	for series, want := range map[string]float64{"weir_io_throttled_seconds_total{cgroup=/a}": 1.5, "weir_io_throttled_seconds_total{cgroup=/b}": 0,
		"weir_io_escaped_bytes_total{cgroup=/a,device=/dev/sda}": 7, "weir_io_escaped_bytes_total{cgroup=/a,device=9:0}": 8} {
		if got, is := p[series]; !is || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, is, want)
		}
	}
	if n := strings.Count(string(text), "\nweir_io_throttled_seconds_total{"); n != 2 {
		t.Errorf("%d groups were paused, want 2:\n%s", n, text)
	}
	asked = errors.New("no pacer is running")
	if _, text = get(t, o.Handler(), Route); strings.Contains(string(text), "throttled") || !strings.Contains(string(text), "weir_group_paced_bytes_per_second") {
		t.Errorf("without an answer:\n%s", text)
	}
}
