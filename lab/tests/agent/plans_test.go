package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/lab"
)

const (
	smallRate, largeRate = 3_000_000, 7_000_000
	smallPlan, largePlan = "write: 3MB/s", "write: 7MB/s"
)

// two are the plans of most tests: containers named web-* have small, and labels may choose large.
func two(disk *lab.TestDisk) string {
	return on(disk, map[string]string{"small": smallPlan, "large": largePlan},
		"assign: [{docker: 'web-*', plan: small}]\nallow-labels: [large]\n")
}

// Containers that run when weird starts, and those that start later, get the limits of their plans:
// the first that matches, or the one that their label chooses, if it may. All others keep theirs. A
// plan that changes is in force on all within a second.
func TestAgentKeepsContainers(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Newest)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	before := []*container{g.start("web-0", nil), g.start("web-1", map[string]string{"weir.plan": "small"})} // not allowed: the assignment counts
	others := []*container{g.start("other", nil), g.start("greedy", map[string]string{"weir.plan": "huge"})}
	w := newWeird(t, g, two(disk))
	w.start()
	for _, c := range before { // ready means that they are in force
		if got := g.wbps(c, disk); got != smallRate {
			t.Errorf("%s: %d", c.name, got)
		}
	}
	small := before
	for i := range 8 {
		small = append(small, g.start(fmt.Sprint("web-", i+2), nil))
	}
	large := g.start("db", map[string]string{"weir.plan": "large"})
	t.Logf("all in force after %v", g.awaitRules(lab.Patience(t, patience), disk, smallRate, small...))
	g.awaitRules(lab.Patience(t, patience), disk, largeRate, large)
	lab.Await(t, patience, "weird to know all", func() bool {
		inForce := 0
		for _, one := range w.status().Targets {
			if one.State == string(reconcile.InForce) {
				inForce++
			}
		}
		return inForce == len(small)+1
	})
	for _, c := range others {
		if got := g.wbps(c, disk); got != 0 {
			t.Errorf("%s has no plan, and the rule %d", c.name, got)
		}
	}

	// A plan changes.
	w.write(strings.Replace(two(disk), smallPlan, "write: 4MB/s", 1))
	took := g.awaitRules(lab.Patience(t, time.Second), disk, 4_000_000, small...)
	t.Logf("a changed plan was in force on %d containers %v after its file", len(small), took)
	if g.wbps(large, disk) != largeRate {
		t.Error("the other plan has changed")
	}

	// A restart: the same name, another group.
	g.end(small[2])
	again := g.start(small[2].name, nil)
	g.awaitRules(lab.Patience(t, patience), disk, 4_000_000, again)
	small[2] = again

	// Without a plan weird takes away what it has set.
	w.write(strings.Replace(two(disk), "'web-*'", "'web-1'", 1))
	g.awaitRules(lab.Patience(t, patience), disk, 0, small[0], small[2])
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, small[1])
	if g.wbps(large, disk) != largeRate {
		t.Error("a limit is lost whose plan has stayed")
	}
	if c := w.status().Counts; c.Missed != 0 || c.Failures != 0 || c.Drifts != 0 {
		t.Errorf("%+v\n%s", c, w.lately())
	}

	// When it ends, limits stay.
	w.stop()
	if g.wbps(small[1], disk) != smallRate || g.wbps(large, disk) != largeRate {
		t.Error("a limit is lost with the end of weird")
	}
	w.start()
	w.write("plans: {}\n")
	g.awaitRules(lab.Patience(t, patience), disk, 0, small[1], large)
	lab.Await(t, patience, "its records to go", func() bool { return len(records(t, g)) == 0 })
}

// records are the containers that weir has on record, of those that run.
func records(t *testing.T, g *engine) (all []string) {
	t.Helper()
	for _, c := range g.all() {
		switch _, err := os.Stat(recordOf(c.id)); {
		case err == nil:
			all = append(all, c.name)
		case !os.IsNotExist(err):
			t.Fatal(err)
		}
	}
	return all
}
