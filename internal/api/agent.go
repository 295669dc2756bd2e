package api

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/agent"
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
	Runtime *AgentRuntime `json:"runtime,omitempty"`
	Counts  struct {
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
	Plan    string     `json:"plan"`
	State   string     `json:"state"`
	Since   time.Time  `json:"since"`
	Drifts  uint64     `json:"drifts"`
	Finding string     `json:"finding,omitempty"`
	Next    *time.Time `json:"next,omitempty"`
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

// AgentOf makes it.
func AgentOf(s agent.Status) Agent {
	a := Agent{Schema: SchemaOf("agent"), Targets: []AgentTarget{}, Sources: []AgentSource{}, Cgroups: []AgentTree{}}
	a.Plans.Files, a.Plans.Loaded, a.Plans.Error = append([]string{}, s.Files...), s.Loaded, s.PlansError
	for _, t := range s.Targets {
		one := AgentTarget{t.Name, t.Plan, string(t.State), t.Since, t.Drifts, t.Finding, nil}
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
	if n := s.Runtime; n != nil {
		a.Runtime = &AgentRuntime{n.Runtime, n.Since, n.Error, n.Reconnects, n.Starts, n.Limited, n.Late, n.Failed, n.Refused, n.P99.Seconds()}
	}
	c := s.Counts
	a.Counts.Drifts, a.Counts.Repaired, a.Counts.Fights, a.Counts.Failures, a.Counts.Missed = c.Drifts, c.Repaired, c.Fights, c.Failures, c.Missed
	return a
}
