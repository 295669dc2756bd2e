package planned

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
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
		"it has just started":      {func(w *world, _ *Manager) { w.list = "[]" }, ofBoth, "is not listed yet", "write 10 MB/s"},
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
	g := hosttest.Group(t, w.host, "/kubepods/pod"+podUID)
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
	}{
		"the API server is not read":  {live: &live{unread: true}, rate: 5e6, want: "in the same cgroup as pod:prod/web"},
		"it has no plan":              {live: &live{is: true}, rate: 5e6},
		"others have set the limit":   {live: &live{unread: true}, rate: 6e6},
		"the runtime does not answer": {live: &live{is: true}, rate: 5e6, lists: errors.New("no answer"), want: "limits of pod:prod/web, and keeps them as long as weir cannot tell"},
		// There is no plan for pods here, and none is needed.
		"weird alone is told of plans": {alone: true, rate: 5e6, want: "that weird has set for pod:prod/web; they stay until that ends or, where weird no longer runs, until you remove them: weir clear pod:prod/web"},
	} {
		m.Live, m.Alone, m.Config.Annotated = c.live, c.alone, !c.alone
		rules[0].Limit.WBPS = limit.PerSecond(c.rate)
		r := &record{Target: "pod:" + podUID, Name: "pod:prod/web", Plan: "a", Limits: rules, Agent: true, At: now(w.host.Root)}
		h := newHeirs(m)
		h.records = func() map[string]*record { return map[string]*record{r.Target: r} }
		h.lists["pod"] = listing{[]targets.Listed{{Kind: "pod", Name: "prod/web", Namespace: "prod", UID: podUID}}, c.lists}
		if err := h.held(t.Context(), slice); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
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
	if err := h.held(t.Context(), scope); err == nil || !strings.Contains(err.Error(), "cannot tell the plan") {
		t.Errorf("its group: %v", err)
	}
}

const scopeOfPodman = "libpod-" + webID + ".scope"

// newPodman is a copy of a machine with a container of Podman in a scope of systemd. crun puts it into a group below; runc
// does not. (It does so on cgroup v2, where systemd sets what a scope has. A copy has no systemd, so its groups are those of v1.)
func newPodman(t *testing.T, crun bool) *world {
	t.Helper()
	w := &world{list: `[{"Id":"` + webID + `","Names":["/web"]}]`}
	socket := sockettest.Serve(t, func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/containers/json" {
			_, _ = fmt.Fprint(out, w.list)
			return
		}
		_, _ = fmt.Fprintf(out, `{"Id":%q,"State":{"Status":"running","Pid":4900},"HostConfig":{}}`, webID)
	})
	scope := "/machine.slice/" + scopeOfPodman
	groups := []string{scope}
	if crun {
		groups = append(groups, scope+"/container")
	}
	files := map[string]string{"run/systemd/system/x": "", "proc/4900/cgroup": "3:blkio:" + groups[len(groups)-1] + "\n",
		"proc/4900/mountinfo": "430 400 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n440 430 254:16 / /data rw,relatime - xfs /dev/vdb rw\n"}
	for _, g := range groups {
		dir := "sys/fs/cgroup/blkio" + g + "/"
		files[dir+"cgroup.procs"] = ""
		for _, file := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
			files[dir+"blkio.throttle."+file+"_device"] = ""
		}
	}
	files["sys/fs/cgroup/blkio"+groups[len(groups)-1]+"/cgroup.procs"] = "4900\n"
	w.host = hosttest.Open(t, "v1", files, host.Options{Sockets: map[string]string{"podman": "unix://" + socket}})
	w.Kernel = hosttest.Rehearse(t, w.host)
	return w
}

// ofPodman is a manager whose systemd lists the scope of the container.
func (w *world) ofPodman(t *testing.T, plan string) Manager {
	t.Helper()
	m := w.manager(t, scopePlans+"assign: [{podman: '*', plan: small}, {unit: 'libpod-*.scope', plan: "+plan+"}]\n")
	m.owners = func(ctx context.Context, kind string, need targets.Need, ids ...string) ([]targets.Listed, error) {
		if kind == "unit" {
			return []targets.Listed{{Kind: kind, Name: scopeOfPodman, Names: []string{scopeOfPodman}}}, nil
		}
		return w.host.List(ctx, kind, need, ids...)
	}
	return m
}

// A container of Podman and its scope are two groups with crun, each with limits of its own, and one group with runc. That has
// the limits of the container also while nothing answers for Podman.
func TestTheScopeOfPodman(t *testing.T) {
	lab.Unit(t)
	down := func(w *world, m *Manager) {
		none := w.host.With("podman", "unix://"+w.host.Root+"/none.sock")
		m.Host = none
		systemd := m.owners
		m.owners = func(ctx context.Context, kind string, need targets.Need, ids ...string) ([]targets.Listed, error) {
			if kind == "unit" {
				return systemd(ctx, kind, need, ids...)
			}
			return none.List(ctx, kind, need, ids...)
		}
	}
	nothing := func(*world, *Manager) {}
	for name, c := range map[string]struct {
		crun bool
		stop func(*world, *Manager)
		why  string // the scope keeps its limits
	}{
		"crun":                   {crun: true, stop: nothing},
		"crun, and nobody there": {crun: true, stop: down},
		"runc":                   {stop: nothing, why: "it is in the same cgroup as podman:web"},
		"runc, and nobody there": {stop: down, why: "limits of podman:web, and keeps them as long as weir cannot tell the plan"},
	} {
		w := newPodman(t, c.crun)
		io, err := w.host.IO()
		if err != nil {
			t.Fatal(err)
		}
		g, err := io.Group("/machine.slice/" + scopeOfPodman)
		if err != nil {
			t.Fatal(err)
		}
		as(t, w.ofPodman(t, "small"), "podman")
		if c.crun {
			as(t, w.ofPodman(t, "small"), "unit")
		}
		m := w.ofPodman(t, "tight")
		c.stop(w, &m)
		all, err := m.OfKind(t.Context(), "unit", []string{scopeOfPodman})
		if err != nil || len(all) != 1 || (all[0].State == Failed) != (c.why != "") || c.why != "" && !strings.Contains(all[0].Err.Error(), c.why) {
			t.Fatalf("%s: %+v, %v", name, all, err)
		}
		want := "write 10 MB/s"
		if c.why == "" {
			want = "write 5 MB/s"
			if all[0].State != Differs {
				t.Errorf("%s: %s, %v", name, all[0].State, all[0].Err)
			}
		}
		if err := m.Put(t.Context(), &all[0]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if l, err := g.Rule(vda); err != nil || l.Bound().String() != want {
			t.Errorf("%s: %s is in force, want %s (%v)", name, l.Bound(), want, err)
		}
	}
}

// Ids of containerd are words as well, and its daemon may not answer. CRI-O's monitor is named after the container, and has a
// group of its own.
func TestAScopeOfContainerd(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	m := w.manager(t, "plans: {small: {write: 10MB/s}}\nassign: [{containerd: '*', plan: small}]")
	m.Host = m.Host.With("containerd", w.host.Root+"/none.sock")
	rules := []deviceRule{{vda, limit.Limit{WBPS: limit.PerSecond(5e6)}}}
	rows := []Device{{Device: blkdev.Device{Number: vda}, Now: limit.None.Overlay(rules[0].Limit), Plan: limit.None}}
	for group, c := range map[string]struct {
		id   string
		held bool
	}{
		"/system.slice/nerdctl-web.scope":               {"web", true},
		"/system.slice/crio-" + webID + ".scope":        {webID, true},
		"/system.slice/crio-conmon-" + webID + ".scope": {webID, false},
		"/kubepods/crio-conmon-" + webID:                {webID, false},
		"/system.slice/nerdctl-db.scope":                {"web", false},
	} {
		g, err := io.Group(group)
		if err != nil {
			t.Fatal(err)
		}
		r := &record{Target: "containerd:default/" + c.id, Name: "containerd:default/" + c.id, Plan: "small", Limits: rules, At: now(w.host.Root)}
		h := newHeirs(m)
		h.records = func() map[string]*record { return map[string]*record{r.Target: r} }
		scope := Target{key: "unit:x.scope", found: &targets.Target{Group: g}, group: &g, Rows: rows}
		var none *targets.NoKindError
		if err := h.held(t.Context(), scope); (err != nil) != c.held || c.held && !errors.As(err, &none) {
			t.Errorf("%s: %v", group, err)
		}
	}
}

// A group can be called after a container, and be another's.
func TestAGroupCalledAfterAContainer(t *testing.T) {
	lab.Unit(t)
	w := newPods(t, nil)
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	rules := []deviceRule{{vda, limit.Limit{WBPS: limit.PerSecond(5e6)}}}
	rows := []Device{{Device: blkdev.Device{Number: vda}, Now: limit.None.Overlay(rules[0].Limit), Plan: limit.None}}
	r := &record{Target: "containerd:k8s.io/" + dbID, Name: "containerd:k8s.io/" + dbID, Plan: "small", Limits: rules, At: now(w.host.Root)}
	h := newHeirs(w.manager(t, "plans: {small: {write: 5MB/s}}\nassign: [{containerd: '*/*', plan: small}]"))
	h.records = func() map[string]*record { return map[string]*record{r.Target: r} }
	h.lists["containerd"] = listing{all: []targets.Listed{{Kind: "containerd", Name: "k8s.io/" + dbID, Names: []string{"k8s.io/" + dbID}, ID: dbID}}}
	for group, held := range map[string]bool{"/kubepods/pod" + podUID + "/" + dbID: true, "/system.slice/backup-" + dbID + ".scope": false} {
		g, err := io.Group(group)
		if err != nil {
			t.Fatal(err)
		}
		err = h.held(t.Context(), Target{key: "unit:x.scope", found: &targets.Target{Group: g}, group: &g, Rows: rows})
		if (err != nil) != held || held && !strings.Contains(err.Error(), "in the same cgroup as "+r.Name) {
			t.Errorf("%s: %v", group, err)
		}
		h.m.Alone, r.Agent = true, true
		err = h.held(t.Context(), Target{key: "unit:x.scope", found: &targets.Target{Group: g}, group: &g, Rows: rows})
		if (err != nil) != held || held && !strings.Contains(err.Error(), "limits that weird has set for "+r.Name) {
			t.Errorf("%s, by weird: %v", group, err)
		}
		h.m.Alone, r.Agent = false, false
	}
}

// The name of a domain does not lead to its group. If libvirt's files are gone, the group that its record names is its own.
func TestTheScopeOfADomain(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group(`/machine.slice/machine-qemu\x2d1\x2ddb.scope`)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(g.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	id, err := g.ID()
	if err != nil {
		t.Fatal(err)
	}
	rules := []deviceRule{{vda, limit.Limit{WBPS: limit.PerSecond(5e6)}}}
	rows := []Device{{Device: blkdev.Device{Number: vda}, Now: limit.None.Overlay(rules[0].Limit), Plan: limit.None}}
	for of, held := range map[uint64]bool{id: true, id + 1: false} {
		r := &record{Target: "vm:db", Name: "vm:db", Plan: "small", Limits: rules, Group: &of}
		h := newHeirs(w.manager(t, "plans: {small: {write: 5MB/s}}\nassign: [{vm: '*', plan: small}]"))
		h.records = func() map[string]*record { return map[string]*record{r.Target: r} }
		err := h.held(t.Context(), Target{key: "unit:x.scope", found: &targets.Target{Group: g}, group: &g, Rows: rows})
		if (err != nil) != held {
			t.Errorf("%t: %v", held, err)
		}
	}
}

// Of thousands of scopes whose containers have plans, each asks for the record of its own container alone.
func TestRecordsAreNotSearched(t *testing.T) {
	lab.Unit(t)
	const many = 500
	w := newWorld(t, "v2")
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	rules := []deviceRule{{vda, limit.Limit{WBPS: limit.PerSecond(10e6)}}}
	rows := []Device{{Device: blkdev.Device{Number: vda}, Now: limit.None.Overlay(rules[0].Limit), Plan: limit.None}}
	records := map[string]*record{}
	var listed []targets.Listed
	for i := range many {
		id := fmt.Sprintf("%064x", i)
		records["docker:"+id] = &record{Target: "docker:" + id, Name: "docker:" + id, Plan: "small", Limits: rules}
		listed = append(listed, targets.Listed{Kind: "docker", Name: id, ID: id})
	}
	h := newHeirs(w.manager(t, strings.Replace(scopePlans+ofWeb, "'*'", "nobody", 1)))
	asked := 0
	h.records = func() map[string]*record { asked++; return records }
	h.lists["docker"] = listing{all: listed}
	for i := range many {
		g, err := io.Group(fmt.Sprintf("/system.slice/docker-%064x.scope", i))
		if err != nil {
			t.Fatal(err)
		}
		scope := Target{key: "unit:x.scope", found: &targets.Target{Group: g}, group: &g, Rows: rows}
		if err := h.held(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
	}
	if asked > many+1 || len(h.keys["docker"]) != many {
		t.Errorf("the records were asked for %d times, of %d listed containers", asked, len(h.keys["docker"]))
	}
}
