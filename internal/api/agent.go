package api

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// An Agent is what weird run answers about its plans, and the document of weird status.
type Agent struct {
	Schema
	Plans struct {
		Files  []string  `json:"files"`
		Loaded time.Time `json:"loaded"`
		Error  string    `json:"error,omitempty"`
	} `json:"plans"`
	Targets []AgentTarget `json:"targets"`
	Sources []AgentSource `json:"sources"`
	Cgroups []AgentTree   `json:"cgroups"`
	// Unwatched says why weird learns late of all changes in cgroups.
	Unwatched string        `json:"cgroups_error,omitempty"`
	Runtime   *AgentRuntime `json:"runtime,omitempty"`
	Counts    struct {
		Drifts   uint64 `json:"drifts"`
		Repaired uint64 `json:"repaired"`
		Fights   uint64 `json:"fights"`
		Failures uint64 `json:"failures"`
		Missed   uint64 `json:"missed"`
	} `json:"counts"`
}

// An AgentTarget is a target with its plan.
type AgentTarget struct {
	Target  string     `json:"target"`
	Group   string     `json:"group,omitempty"`
	Plan    string     `json:"plan"`
	State   string     `json:"state"`
	Since   time.Time  `json:"since"`
	Drifts  uint64     `json:"drifts"`
	Finding string     `json:"finding,omitempty"`
	Next    *time.Time `json:"next,omitempty"`
	Held    AgentHeld  `json:"held"`
}

// An AgentHeld says whether the limits of a target are held, by measurement.
type AgentHeld struct {
	State  string       `json:"state"`
	Since  *time.Time   `json:"since,omitempty"`
	Code   string       `json:"code,omitempty"`
	Why    string       `json:"why,omitempty"`
	Limits []AgentLimit `json:"limits"`
}

// An AgentLimit is one rate of one device, with what was measured of it last.
type AgentLimit struct {
	Device   string        `json:"device"`
	Number   blkdev.Number `json:"number"`
	Rate     string        `json:"rate"`
	Limit    uint64        `json:"limit"`
	State    string        `json:"state"`
	Since    *time.Time    `json:"since,omitempty"`
	Measured *float64      `json:"measured,omitempty"`
	From     *time.Time    `json:"from,omitempty"`
	To       *time.Time    `json:"to,omitempty"`
	Why      string        `json:"why,omitempty"`
}

// An AgentSource is a kind of targets.
type AgentSource struct {
	Kind       string    `json:"kind"`
	Follows    bool      `json:"follows"`
	Since      time.Time `json:"since"`
	Reconnects uint64    `json:"reconnects"`
	Error      string    `json:"error,omitempty"`
}

// An AgentTree is a cgroup hierarchy that is followed.
type AgentTree struct {
	Hierarchy string `json:"hierarchy"`
	Groups    int    `json:"groups"`
	Unwatched int    `json:"unwatched"`
	Left      uint64 `json:"left_out"`
	Overflows uint64 `json:"overflows"`
}

// An AgentRuntime is a container runtime that asks before it starts a container.
type AgentRuntime struct {
	Name       string    `json:"name"` // empty: it does not ask
	Since      time.Time `json:"since"`
	Error      string    `json:"error,omitempty"`
	Reconnects uint64    `json:"reconnects"`
	Starts     uint64    `json:"starts"`
	Limited    uint64    `json:"limited"`
	Late       uint64    `json:"late"`
	Failed     uint64    `json:"failed"`
	Refused    uint64    `json:"refused"`
	P99Seconds float64   `json:"p99_seconds"`
}

// HeldOf makes it.
func HeldOf(h agent.Held) AgentHeld {
	doc := AgentHeld{State: string(cmp.Or(h.State, held.NotTold)), Since: timeOf(h.Since), Code: h.Code, Why: h.Text}
	doc.Limits = list(h.Limits, func(l held.Limit) AgentLimit {
		one := AgentLimit{Device: l.Node, Number: l.Device, Rate: l.Key.String(), Limit: l.PerSec, State: string(l.State), Since: timeOf(l.Since), Why: l.Why}
		if l.State != held.NotTold {
			one.Measured, one.From, one.To = &l.Rate, timeOf(l.From), timeOf(l.To)
		}
		return one
	})
	return doc
}

// timeOf is a time that may be missing.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// AgentOf makes it.
func AgentOf(s agent.Status) Agent {
	a := Agent{Schema: SchemaOf("agent"), Targets: []AgentTarget{}, Sources: []AgentSource{}, Cgroups: []AgentTree{}}
	a.Plans.Files, a.Plans.Loaded, a.Plans.Error = append([]string{}, s.Files...), s.Loaded, s.PlansError
	for _, t := range s.Targets {
		one := AgentTarget{t.Name, t.Group, t.Plan, string(t.State), t.Since, t.Drifts, t.Finding, nil, HeldOf(s.Held[t.Key])}
		if !t.Next.IsZero() {
			one.Next = &t.Next
		}
		a.Targets = append(a.Targets, one)
	}
	for _, f := range s.Sources {
		one := AgentSource{f.Kind, f.Follows, f.Since, f.Reconnects, f.Error}
		if one.Error == "" {
			one.Error = f.LookError
		}
		a.Sources = append(a.Sources, one)
	}
	for _, at := range slices.Sorted(maps.Keys(s.Hierarchies)) {
		h := s.Hierarchies[at]
		a.Cgroups = append(a.Cgroups, AgentTree{at, h.Groups, h.Unwatched, h.Left, h.Overflows})
	}
	a.Unwatched = s.TreeError
	if n := s.Runtime; n != nil {
		a.Runtime = &AgentRuntime{n.Runtime, n.Since, n.Error, n.Reconnects, n.Starts, n.Limited, n.Late, n.Failed, n.Refused, n.P99.Seconds()}
	}
	c := s.Counts
	a.Counts.Drifts, a.Counts.Repaired, a.Counts.Fights, a.Counts.Failures, a.Counts.Missed = c.Drifts, c.Repaired, c.Fights, c.Failures, c.Missed
	return a
}

// An AgentEvent tells that something of a target has changed: one of the events at GET /events.
type AgentEvent struct {
	Schema
	Target  string `json:"target"`
	Plan    string `json:"plan"`
	State   string `json:"state"`
	Held    string `json:"held"`
	Finding string `json:"finding"`
	Ended   bool   `json:"ended"`
}

// AgentEventOf makes it.
func AgentEventOf(target, plan, state, held, finding string, ended bool) AgentEvent {
	return AgentEvent{SchemaOf("agent.event"), target, plan, state, held, finding, ended}
}
