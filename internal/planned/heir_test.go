package planned

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

const scopeOfWeb = "docker-" + webID + ".scope"

// newScope is a copy of a machine whose systemd has made a scope for the container web.
func newScope(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, "v1")
	w.list = `[{"Id":"` + webID + `","Names":["/web"]}]`
	root := w.host.Root
	scope := filepath.Join(root, "sys/fs/cgroup/blkio/system.slice", scopeOfWeb)
	if err := errors.Join(os.MkdirAll(filepath.Dir(scope), 0o755), os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755), os.Rename(w.groupOf(t, webID).Dir(), scope),
		os.WriteFile(filepath.Join(root, "proc/4900/cgroup"), []byte("3:blkio:/system.slice/"+scopeOfWeb+"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(host.Options{Root: root, Sockets: map[string]string{"docker": w.host.Socket("docker")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	w.host, w.Kernel = h, hosttest.Rehearse(t, h)
	return w
}

// scopes is a manager whose systemd lists the scope.
func (w *world) scopes(t *testing.T, text string) Manager {
	t.Helper()
	m := w.manager(t, text)
	m.owners = func(ctx context.Context, kind string, need targets.Need, ids ...string) ([]targets.Listed, error) {
		if kind == "unit" {
			return []targets.Listed{{Kind: kind, Name: scopeOfWeb, Names: []string{scopeOfWeb}}}, nil
		}
		return w.host.List(ctx, kind, need, ids...)
	}
	return m
}

func (w *world) inScope(t *testing.T) string {
	t.Helper()
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group("/system.slice/" + scopeOfWeb)
	if err != nil {
		t.Fatal(err)
	}
	l, err := g.Rule(vda)
	if err != nil {
		t.Fatal(err)
	}
	return l.Bound().String()
}

const (
	scopePlans = "plans: {small: {write: 10MB/s}, tight: {write: 5MB/s}, more: {write: 10MB/s, read: 3MB/s}}\n"
	ofScope    = "assign: [{unit: 'docker-*.scope', plan: small}, {docker: nobody, plan: small}]\n"
	ofWeb      = "assign: [{docker: '*', plan: small}]\n"
)

// as puts what two plans say into force: with one apply, or as the sources of the two kinds do, one after the other.
func as(t *testing.T, m Manager, kinds ...string) {
	t.Helper()
	if len(kinds) == 0 {
		if r, err := m.Apply(t.Context(), false); err != nil {
			t.Fatalf("%s, %v", spell(r), err)
		}
	}
	for _, kind := range kinds {
		all, err := m.OfKind(t.Context(), kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if all[i].State == Differs || all[i].Lapsed() {
				if err := m.Put(t.Context(), &all[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A plan goes from one name of a cgroup to the other: at no moment is the cgroup without the limit, and the limit is on
// record, under one of the names, until the plan goes.
func TestAPlanMovesToAnotherKind(t *testing.T) {
	lab.Unit(t)
	limits := map[string]string{"small": "write 10 MB/s", "tight": "write 5 MB/s", "more": "read 3 MB/s, write 10 MB/s"}
	for _, way := range []struct{ from, to, leaver, heir, record string }{
		{ofScope, ofWeb, "unit", "docker", "docker%3A3f2a"}, {ofWeb, ofScope, "docker", "unit", "unit%3Adocker"},
	} {
		for then, want := range limits {
			for name, kinds := range map[string][]string{"apply": nil, "the leaver first": {way.leaver, way.heir}, "the heir first": {way.heir, way.leaver}} {
				t.Run(way.leaver+" to "+way.heir+", "+then+", "+name, func(t *testing.T) {
					w := newScope(t)
					as(t, w.scopes(t, scopePlans+way.from))
					if got := w.inScope(t); got != limits["small"] {
						t.Fatalf("before: %s", got)
					}
					w.Refuse = func(file, line string) error {
						if strings.Contains(file, "write_bps") && strings.HasSuffix(line, " 0") {
							t.Errorf("the limit is taken off: %q to %s", line, file)
						}
						if len(w.onRecord(t)) == 0 {
							t.Errorf("nothing is on record at %q to %s", line, file)
						}
						return nil
					}
					m := w.scopes(t, scopePlans+strings.Replace(way.to, "small", then, 1))
					if kinds == nil {
						w.isTheDeed(t, m)
					} else {
						as(t, m, kinds...)
					}
					w.Writes = nil
					for range 2 { // the second time nothing is left to be done
						if got := w.inScope(t); got != want || !slices.Equal(w.onRecord(t), []string{way.record}) {
							t.Fatalf("%s is in force, on record %q", got, w.onRecord(t))
						}
						as(t, m, kinds...)
					}
					if len(w.Writes) != 0 {
						t.Errorf("%v", w.Writes)
					}
					w.Refuse = nil
					as(t, w.scopes(t, scopePlans))
					if got := w.inScope(t); got != "no rate named" || len(w.onRecord(t)) != 0 {
						t.Errorf("the plan is gone: %s is in force, on record %q", got, w.onRecord(t))
					}
				})
			}
		}
	}
}

// isTheDeed applies plans, and compares that with what a dry run shows.
func (w *world) isTheDeed(t *testing.T, m Manager) {
	t.Helper()
	w.Writes = nil
	before := w.onRecord(t)
	r, err := m.Apply(t.Context(), true)
	if err != nil || len(w.Writes) != 0 || !slices.Equal(w.onRecord(t), before) {
		t.Fatalf("a dry run: %s, %v, %v", spell(r), err, w.Writes)
	}
	var shown []cgroupfs.Write
	kept, first := map[string]string{}, map[string]string{}
	for _, s := range r.Steps() {
		if !strings.HasSuffix(s.File, ".json") {
			shown = append(shown, cgroupfs.Write{File: s.File, Line: s.Line})
			continue
		}
		if kept[s.File] = s.Line; len(shown) == 0 {
			first[s.File] = s.Line
		}
	}
	refuse := w.Refuse
	w.Refuse = func(file, line string) error {
		for file, line := range first {
			text, err := os.ReadFile(file)
			if is := moments.ReplaceAllString(string(text), "}"); is != line || err != nil {
				t.Errorf("before the first rule, %s is on record, want %s (%v)", is, line, err)
			}
		}
		first = nil
		return refuse(file, line)
	}
	if r, err = m.Apply(t.Context(), false); err != nil || !slices.Equal(w.Writes, shown) || len(kept) != 2 {
		t.Errorf("%s, %v: did %v, shown %v, %q", spell(r), err, w.Writes, shown, kept)
	}
	for file, line := range kept {
		text, err := os.ReadFile(file)
		if is := moments.ReplaceAllString(string(text), "}"); is != line || (err == nil) != (line != "") {
			t.Errorf("%s: %s, want %s (%v)", file, is, line, err)
		}
	}
}

// As long as it cannot be told whether a cgroup has a plan by another name, its limits stay.
func TestAnHeirThatCannotBeAskedFor(t *testing.T) {
	lab.Unit(t)
	for name, stop := range map[string]func(w *world){
		"it answers nonsense": func(w *world) { w.list = "x" },
		"it does not run":     func(w *world) { w.host = w.host.With("docker", "unix://"+w.host.Root+"/none.sock") },
	} {
		w := newScope(t)
		as(t, w.scopes(t, scopePlans+ofScope))
		w.Writes = nil
		stop(w)
		m := w.scopes(t, scopePlans+ofWeb)
		if r, err := m.Apply(t.Context(), false); err == nil || !strings.HasSuffix(spell(r), " none failed") {
			t.Errorf("%s: %s, %v", name, spell(r), err)
		}
		all, err := m.OfKind(t.Context(), "unit", nil)
		if err != nil || len(all) != 1 || all[0].State != Failed || all[0].Err == nil {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
		if got := w.inScope(t); got != "write 10 MB/s" || len(w.Writes) != 0 || !slices.Equal(w.onRecord(t), []string{"unit%3Adocker"}) {
			t.Errorf("%s: %s is in force, on record %q", name, got, w.onRecord(t))
		}
	}
}

// A runtime that does not answer while a container of it runs may have the heir. One that the group is none of is not asked.
func TestADaemonThatIsDown(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	none := "unix://" + w.host.Root + "/none.sock"
	m := Manager{Host: w.host.With("docker", none).With("containerd", none).With("pod", none)}
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	const pod = "/kubepods.slice/kubepods-pod8f14e45f_ceea_467f_a8d0_000000000001.slice"
	for _, c := range []struct {
		kind, path string
		down       bool
	}{
		{"docker", "/system.slice/docker-" + webID + ".scope", true}, {"containerd", pod + "/cri-containerd-" + webID + ".scope", true}, {"pod", pod, true},
		{"containerd", "/user.slice/session-1.scope", false}, {"pod", "/system.slice", false}, {"unit", "/system.slice/a.service", false},
	} {
		g, err := io.Group(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := (heirs{m: m}).isDown(t.Context(), c.kind, targets.Target{Group: g}); (err != nil) != c.down {
			t.Errorf("%s of %s: %v", c.kind, c.path, err)
		}
	}
}

// The heir cannot be limited as its plan says: what is in force of the plan before stays, and goes with the heir's plan.
func TestAnHeirThatFails(t *testing.T) {
	lab.Unit(t)
	for name, kinds := range map[string][]string{"apply": nil, "the sources": {"unit", "docker"}} {
		w := newScope(t)
		as(t, w.scopes(t, scopePlans+ofScope))
		w.Writes = nil
		m := w.scopes(t, "plans: {lost: {on: [{path: /nowhere, write: 1MB/s}]}}\n"+strings.Replace(ofWeb, "small", "lost", 1))
		if kinds != nil {
			as(t, m, kinds...)
		} else if r, err := m.Apply(t.Context(), false); err == nil {
			t.Errorf("%s", spell(r))
		}
		r, err := recordOf(w.host.Root, "docker:"+webID)
		if got := w.inScope(t); err != nil || got != "write 10 MB/s" || len(w.Writes) != 0 || !r.has(vda, limit.WBPS, 10e6) || len(w.onRecord(t)) != 1 {
			t.Errorf("%s: %s is in force, on record %+v, %q (%v)", name, got, r, w.onRecord(t), err)
		}
		as(t, w.scopes(t, scopePlans))
		if got := w.inScope(t); got != "no rate named" || len(w.onRecord(t)) != 0 {
			t.Errorf("%s: %s is left, on record %q", name, got, w.onRecord(t))
		}
	}
}

// Only those kinds are asked whose groups it can be: the daemon of another one may hang.
func TestMayHave(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	io, err := w.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]string{
		"/system.slice/nginx.service":                          "unit",
		"/system.slice/" + scopeOfWeb:                          "docker unit",
		"/docker/" + webID:                                     "docker",
		"/machine.slice/libpod-" + webID + ".scope/container":  "podman",
		"/machine.slice/libpod-" + webID + ".scope":            "podman unit",
		"/kubepods.slice/kubepods-pod8f14.slice":               "pod unit",
		"/kubepods/pod8f14":                                    "containerd pod",
		"/system.slice/cri-containerd-" + webID + ".scope":     "containerd unit",
		`/machine.slice/machine-qemu\x2d1\x2ddb.scope/libvirt`: "containerd vm",
		`/machine.slice/machine-qemu\x2d1\x2ddb.scope`:         "containerd vm unit",
		"/user.slice/user-1000.slice":                          "unit",
		"/machine.slice/libpod-conmon-" + webID + ".scope":     "unit",
		"/system.slice/crio-conmon-" + webID + ".scope":        "unit",
		"/k8s.io/web": "containerd",
	} {
		g, err := io.Group(group)
		if err != nil {
			t.Fatal(err)
		}
		its := targets.Target{Group: g, Owner: targets.OwnerOf(g, true)}
		var got []string
		for _, kind := range kinds {
			if mayHave(kind, its) {
				got = append(got, kind)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %s", group, got, want)
		}
	}
}
