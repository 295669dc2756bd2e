package planned

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// ofBoth has a plan for a container, and another one for its scope.
const ofBoth = "assign: [{docker: '*', plan: small}, {unit: 'docker-*.scope', plan: tight}]\n"

// A cgroup has limits of a container by its plan. As long as that one cannot be told, the plan of its scope does not take them
// away, also where weir has just started and has looked at no container yet.
func TestAGroupOfATargetThatIsNotRead(t *testing.T) {
	lab.Unit(t)
	nothing := func(*world, *Manager) {}
	unknown := func(w *world, m *Manager) {
		m.owners = func(_ context.Context, kind string, _ targets.Need, _ ...string) ([]targets.Listed, error) {
			if kind == "unit" {
				return []targets.Listed{{Kind: kind, Name: scopeOfWeb, Names: []string{scopeOfWeb}}}, nil
			}
			return []targets.Listed{{Kind: kind, Name: "web", Names: []string{"web"}, ID: webID, Unread: &targets.UnreadError{Target: "docker:web", Why: "it is too large"}}}, nil
		}
	}
	for name, c := range map[string]struct {
		stop  func(w *world, m *Manager)
		plans string
		why   string // the scope is not limited
		want  string
	}{
		"it answers nonsense": {func(w *world, _ *Manager) { w.list = "x" }, ofBoth, "cannot tell the plan", "write 10 MB/s"},
		"it does not run": {func(w *world, m *Manager) {
			m.Host = m.Host.With("docker", "unix://"+w.host.Root+"/none.sock")
			w.list = "x"
		}, ofBoth, "cannot tell the plan", "write 10 MB/s"},
		"its labels are not known": {unknown, ofBoth, "cannot tell the plan", "write 10 MB/s"},
		"nobody has looked":        {nothing, ofBoth, "in the same cgroup as docker:web", "write 10 MB/s"},
		"it has no plan":           {nothing, strings.Replace(ofBoth, "'*'", "nobody", 1), "", "write 5 MB/s"},
		"it is gone":               {func(w *world, _ *Manager) { w.list, w.removed = "[]", true }, ofBoth, "", "write 5 MB/s"},
	} {
		for _, whole := range []bool{false, true} {
			w := newScope(t)
			as(t, w.scopes(t, scopePlans+ofWeb))
			m := w.scopes(t, scopePlans+c.plans)
			c.stop(w, &m)
			var scope Target
			if whole {
				r, err := m.Apply(t.Context(), false)
				i := slices.IndexFunc(r.Targets, func(one Target) bool { return kindOf(one.key) == "unit" })
				if i < 0 || err == nil && c.why != "" {
					t.Fatalf("%s: %s, %v", name, spell(r), err)
				}
				scope = r.Targets[i]
			} else {
				all, err := m.OfKind(t.Context(), "unit", []string{scopeOfWeb})
				if err != nil || len(all) != 1 {
					t.Fatalf("%s: %+v, %v", name, all, err)
				}
				if err := m.Put(t.Context(), &all[0]); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				scope = all[0]
			}
			if (scope.State == Failed) != (c.why != "") || c.why != "" && !strings.Contains(scope.Err.Error(), c.why) {
				t.Errorf("%s, whole %t: %s, %v", name, whole, scope.State, scope.Err)
			}
			if got := w.inScope(t); got != c.want {
				t.Errorf("%s, whole %t: %s is in force, want %s", name, whole, got, c.want)
			}
		}
	}
}

// So it is with a pod's slice. What weird alone is told of a pod, weir plan apply leaves alone.
func TestASliceOfAPodThatIsNotRead(t *testing.T) {
	lab.Unit(t)
	w := newPods(t, nil)
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group("/kubepods/pod" + podUID)
	if err != nil {
		t.Fatal(err)
	}
	m := w.manager(t, "plans: {}")
	m.Config.Annotated = true
	rules := []deviceRule{{vda, limit.Limit{WBPS: limit.PerSecond(5e6)}}}
	rows := []Device{{Device: blkdev.Device{Number: vda}, Now: limit.None.Overlay(rules[0].Limit), Plan: limit.None}}
	slice := Target{key: "unit:x.slice", found: &targets.Target{Group: g}, group: &g, Rows: rows}
	for name, c := range map[string]struct {
		live  Live
		alone bool
		rate  uint64 // of the record
		lists error
		want  string
		fails bool
	}{
		"the API server is not read":   {live: &live{unread: true}, rate: 5e6, want: "pod:prod/web"},
		"it has no plan":               {live: &live{is: true}, rate: 5e6},
		"others have set the limit":    {live: &live{unread: true}, rate: 6e6},
		"the runtime does not answer":  {live: &live{is: true}, rate: 5e6, lists: errors.New("no answer"), want: "pod:prod/web", fails: true},
		"weird alone is told of plans": {alone: true, rate: 5e6, want: "pod:prod/web"},
	} {
		m.Live, m.Alone = c.live, c.alone
		rules[0].Limit.WBPS = limit.PerSecond(c.rate)
		r := &record{Target: "pod:" + podUID, Name: "pod:prod/web", Plan: "a", Limits: rules, Agent: true, At: now(w.host.Root)}
		h := newHeirs(m)
		h.records = func() map[string]*record { return map[string]*record{r.Target: r} }
		h.lists["pod"] = listing{[]targets.Listed{{Kind: "pod", Name: "prod/web", Namespace: "prod", UID: podUID}}, c.lists}
		holder, err := h.holder(t.Context(), slice)
		if holder != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, holder, err)
		}
	}
}

// Of two daemons of a kind one does not answer, and the list has the containers of the other one alone: whether the container
// has a plan cannot be told.
func TestAListOfAnotherDaemon(t *testing.T) {
	lab.Unit(t)
	w := newScope(t)
	as(t, w.scopes(t, scopePlans+ofWeb))
	its, err := w.host.Target(t.Context(), "docker:web")
	if err != nil {
		t.Fatal(err)
	}
	m := w.scopes(t, scopePlans+ofWeb)
	m.Host = w.host.With("docker", "unix://"+w.host.Root+"/none.sock")
	h := newHeirs(m)
	h.lists["docker"] = listing{all: []targets.Listed{{Kind: "docker", Name: "db", Names: []string{"db"}, ID: dbID}}}
	scope := Target{key: "unit:" + scopeOfWeb, found: &its, group: &its.Group, Rows: []Device{{Device: blkdev.Device{Number: vda}, Now: limit.None.Overlay(limit.Limit{WBPS: limit.PerSecond(10e6)})}}}
	if heir, err := h.of(t.Context(), scope); err == nil {
		t.Errorf("its heir: %+v", heir)
	}
	if holder, err := h.holder(t.Context(), scope); err == nil {
		t.Errorf("its group has the limits of %q", holder)
	}
}
