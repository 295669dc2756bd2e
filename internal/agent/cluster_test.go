package agent

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
)

// What a pod lacks right after its start may come with its next container. After that its limits are not all in force.
func TestAPodThatLacksAVolume(t *testing.T) {
	a := &Agent{core: reconcile.NewCore(), measurer: newMeasurer(Options{}, nil, nil)}
	for key, since := range map[string]time.Duration{"pod:prod/new": 0, "pod:prod/old": startsMost} {
		a.core.Decide(time.Now().Add(-since), reconcile.Target{Key: key, Name: key, Plan: "annotations", Lacks: "no volume"})
	}
	states := a.podStates()
	if len(states) != 2 {
		t.Fatalf("%+v", states)
	}
	for _, s := range states {
		if s.Finding != "no volume" || s.Settling != (s.Name == "prod/new") {
			t.Errorf("%+v", s)
		}
	}
}
