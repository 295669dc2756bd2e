package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
)

// Whether it lives is asked several times a minute, and takes no longer with thousands of targets.
func TestLiveTakesNoLonger(t *testing.T) {
	d := prepare(t, "plans: {small: {write: 1MB/s}}\n")
	live := func() {
		if err := d.Live(); err != nil {
			t.Error(err)
		}
	}
	few := testing.AllocsPerRun(10, live)
	for i := range 1000 {
		key := fmt.Sprint("docker:", i)
		d.core.Decide(time.Now(), reconcile.Target{Key: key, Name: key, Group: "/" + key, Plan: "small"})
	}
	if many := testing.AllocsPerRun(10, live); many > few+10 {
		t.Errorf("%v allocations with 1,000 targets, %v without", many, few)
	}
}
