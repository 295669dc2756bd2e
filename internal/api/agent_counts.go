package api

import (
	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/reconcile"
)

// AgentCounts is what weird run answers about its own work, for weird metrics.
type AgentCounts struct {
	Schema
	Drifts   uint64       `json:"drifts"`
	Repaired uint64       `json:"repaired"`
	Fights   uint64       `json:"fights"`
	Failures uint64       `json:"failures"`
	Missed   uint64       `json:"missed"`
	Applied  AgentApplied `json:"applied"`
}

// AgentApplied counts attempts to set the limits of a target, by how long they took.
type AgentApplied struct {
	Count   uint64        `json:"count"`
	Seconds float64       `json:"seconds"`
	Within  []AgentWithin `json:"within"`
}

// An AgentWithin counts the attempts that took at most so long, those of shorter bounds among them.
type AgentWithin struct {
	Seconds float64 `json:"seconds"`
	Count   uint64  `json:"count"`
}

// AgentCountsOf makes it.
func AgentCountsOf(c agent.Counts) AgentCounts {
	doc := AgentCounts{Schema: SchemaOf("agent.counts"), Drifts: c.Drifts, Repaired: c.Repaired, Fights: c.Fights, Failures: c.Failures, Missed: c.Missed}
	doc.Applied = AgentApplied{Count: c.Applied.Count, Seconds: c.Applied.Sum.Seconds()}
	within := uint64(0)
	for i, most := range reconcile.ApplyBounds() {
		within += c.Applied.Within[i]
		doc.Applied.Within = append(doc.Applied.Within, AgentWithin{most.Seconds(), within})
	}
	return doc
}
