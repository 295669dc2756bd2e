package agent

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/lab"
)

// driftMost is the promise: what somebody writes into the rules is put back within it.
const driftMost = 100 * time.Millisecond

// What somebody writes into the rules of containers is put back, and counted: 200 times, by turns
// on ten containers, because weird gives way to who does not stop on one.
func TestAgentRepairsDrift(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.OnceV1) // TestAgentGivesWay has weird repair rules of v2
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	var all []*container
	for i := range 10 {
		all = append(all, g.start(fmt.Sprint("web-", i), nil))
	}
	w.start()
	const round = 200
	times := uint64(0)
	// A machine that is too busy takes longer, and is asked again.
	promised := lab.Band{Low: driftMost.Seconds() / lab.Patience(t, driftMost).Seconds(), High: math.Inf(1)}
	lab.Ratio(t, "repairs a second, by the p99 of their times", 1/driftMost.Seconds(), promised, func() float64 {
		var took []time.Duration
		for i := range round {
			c := all[i%len(all)]
			began := time.Now()
			g.overwrite(c, disk, 9_000_000)
			g.awaitRules(lab.Patience(t, patience), disk, smallRate, c)
			took = append(took, time.Since(began))
		}
		times += round
		_, p99 := logTimes(t, "from a foreign write to the repaired rule", took)
		return 1 / p99.Seconds()
	})
	lab.Await(t, patience, "all repairs to be counted", func() bool { return w.status().Counts.Repaired == times })
	if c := w.status().Counts; c.Drifts != times || c.Missed != 0 || c.Failures != 0 || c.Fights != 0 {
		t.Errorf("%+v, want %d drifts", c, times)
	}
}

// A program that does not stop writing gets its way, and weird says so.
func TestAgentGivesWay(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.OnceV2)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	fought, other := g.start("web-fought", nil), g.start("web-other", nil)
	w.start()
	const own = 9_000_000
	writes := 0
	given := func() bool {
		one := w.target("docker:web-fought")
		return one != nil && one.State == string(reconcile.Left)
	}
	lab.Await(t, 2*patience, "weird to give way", func() bool {
		if g.wbps(fought, disk) != own {
			g.overwrite(fought, disk, own)
			writes++
		}
		return given()
	})
	if writes < reconcile.FightDrifts-5 {
		t.Errorf("it gave way after %d writes", writes)
	}
	g.overwrite(fought, disk, own)
	time.Sleep(2 * time.Second) // 20 times what a repair takes: it does nothing
	if got := g.wbps(fought, disk); got != own {
		t.Errorf("the rule is %d again", got)
	}
	one := w.target("docker:web-fought")
	if one == nil || one.State != string(reconcile.Left) || !strings.Contains(one.Finding, "leaves it alone") {
		t.Errorf("%+v", one)
	}
	if c := w.status().Counts; c.Fights != 1 {
		t.Errorf("%+v", c)
	}
	g.overwrite(other, disk, own) // of which nobody has said anything
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, other)
}
