package agent

import (
	"context"
	"log/slog"
	"strings"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/planned"
)

// A Cluster knows what the container runtime is not told of pods.
type Cluster interface {
	planned.Live
	// Run reads it, and tells how pods are, until the context ends.
	Run(ctx context.Context)
}

// ClusterOptions say what a Cluster works on.
type ClusterOptions struct {
	// Changed is told of a pod by its UID, and of a kind ("pod", "containerd") by an empty name.
	Changed func(kind, name string)
	// Pods are the pods of this node that have a plan or had one.
	Pods func() []PodState
	Log  *slog.Logger
}

// A PodState says how a pod's limits are.
type PodState struct {
	Name     string // NAMESPACE/NAME
	Plan     string
	Settling bool   // weir is about to change them
	Finding  string // why they are not in force; empty: they are
	Held     bool   // they were measured to be held
	NotHeld  string // why they are not held; empty: they are, or it is not told
}

// podStates are those of all pods that are known.
func (a *Agent) podStates() (all []PodState) {
	targets, _ := a.core.Status()
	for _, t := range targets {
		name, is := strings.CutPrefix(t.Name, "pod:")
		if !is {
			continue
		}
		s := PodState{Name: name, Plan: t.Plan, Settling: t.State == reconcile.Differs, Finding: t.Finding}
		if h := a.measurer.of(t); t.State == reconcile.InForce {
			s.Held = h.State == held.Held
			if h.State == held.NotHeld {
				s.NotHeld = h.Text
				if s.NotHeld == "" {
					s.NotHeld = "it was measured to be above its limit"
				}
			}
		}
		all = append(all, s)
	}
	return all
}
