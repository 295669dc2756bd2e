package metrics

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
)

// targets are those of weird run; none: it does not answer, as where it does not run.
func (o Options) targets(ctx context.Context) []api.AgentTarget {
	if o.Targets == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, agentMost)
	defer cancel()
	all, err := o.Targets(ctx)
	if err != nil {
		return nil
	}
	return all
}

// addTargets adds what only weird run knows of the groups of its targets: their plans, where annotations or Kubernetes'
// API server name them, and what it has measured of their limits, where nothing was measured here.
func (g *gathering) addTargets(all []api.AgentTarget) {
	g.plans, g.measured = maps.Clone(g.plans), maps.Clone(g.measured)
	if g.plans == nil {
		g.plans = map[string]string{}
	}
	theirs := map[limitOf]bool{}
	for _, t := range all {
		if t.Group == "" {
			continue
		}
		if g.plans[t.Group] == "" && t.State == inForce {
			g.plans[t.Group] = t.Plan
		}
		for _, l := range t.Held.Limits {
			i := slices.IndexFunc(limit.Keys[:], func(k limit.Key) bool { return k.String() == l.Rate })
			if i < 0 || l.To == nil {
				continue
			}
			if age := g.snapshot.At.Sub(*l.To); age > measuredMost || age < -clocksMost { // the clock was set back since
				continue
			}
			of := limitOf{t.Group, l.Number, limit.Keys[i].Direction()}
			before, is := theirs[of]
			theirs[of] = l.State == string(held.Held) && (before || !is)
		}
	}
	for of, is := range theirs {
		if _, here := g.measured[of]; !here {
			if g.measured == nil {
				g.measured = map[limitOf]bool{}
			}
			g.measured[of] = is
		}
	}
}

// clocksMost is how much later than a reading a measurement may have been that weird run tells of.
const clocksMost = time.Minute

// inForce is the state of a target whose limits are those of its plan.
const inForce = string(reconcile.InForce)
