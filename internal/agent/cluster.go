package agent

import (
	"context"
	"log/slog"
	"strings"
	"time"

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
	// Looked reports whether all pods were looked at since the agent began; nil: they were.
	Looked func() bool
	// Check says what is wrong with annotations, by the plans in force; nil: what annotations.Parse says.
	Check func(all map[string]string) error
	Log   *slog.Logger
}

// A PodState says how a pod's limits are.
type PodState struct {
	Name     string // NAMESPACE/NAME
	UID      string // empty: it is not known
	Plan     string
	Settling bool   // weir is about to change them
	Finding  string // why they, or some of them, are not in force; empty: they are
	Held     bool   // they were measured to be held
	NotHeld  string // why they are not held; empty: they are, or it is not told
}

// hasLooked reports whether each source has looked at its targets once.
func (a *Agent) hasLooked() bool {
	select {
	case <-a.loop.Looked():
		return true
	default:
		return false
	}
}

// check says what is wrong with a pod's annotations.
func (a *Agent) check(all map[string]string) error {
	config, _ := a.plans.Now()
	return planned.Manager{Config: config}.Check(all)
}

// startsMost is how long a pod may take from its first container's start until one has mounted each of its volumes.
const startsMost = 30 * time.Second

// isStarting reports whether what a target lacks may still come with its next container.
func isStarting(t reconcile.Status) bool {
	return t.State == reconcile.InForce && t.Finding != "" && time.Since(t.Since) < startsMost
}

// podStates are those of all pods that are known.
func (a *Agent) podStates() (all []PodState) {
	targets, _ := a.core.Status()
	for _, t := range targets {
		name, is := strings.CutPrefix(t.Name, "pod:")
		if !is {
			continue
		}
		uid, _ := strings.CutPrefix(t.Key, "pod:")
		if strings.Contains(uid, "/") { // of a record of an earlier weir
			uid = ""
		}
		s := PodState{Name: name, UID: uid, Plan: t.Plan, Settling: t.State == reconcile.Differs || isStarting(t), Finding: t.Finding}
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
