package planned

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// A place of a plan that is not there is told of, and is no end of the target: its limits and its record stay.
func TestAPlaceThatIsMissing(t *testing.T) {
	lab.Unit(t)
	for _, place := range []string{"/nowhere", "UUID=4711", "254:99", "/dev/nothing"} {
		for _, version := range []string{"v1", "v2"} {
			w := newWorld(t, version)
			w.apply(t, assigned)
			w.Writes = nil
			lost := "plans: {db: {write: 10MB/s, on: [{path: /data, write: 50MB/s}]}, lost: {write: 1MB/s, on: [{path: '" + place + "', write: 2MB/s}]}}\nassign: [{docker: web, plan: lost}]\nallow-labels: [db]\n"
			m := w.manager(t, lost)
			r, err := m.Apply(t.Context(), false)
			if err == nil || !strings.Contains(err.Error(), "docker:web: resolve "+place+": ") || spell(r) != "docker:web lost failed, docker:db db in-force" {
				t.Errorf("%s, %s: %s, %v", version, place, spell(r), err)
			}
			if got := w.limitOf(t, webID, vda); got != "write 10 MB/s" || len(w.Writes) != 0 || len(w.onRecord(t)) != 2 {
				t.Errorf("%s, %s: %s is in force, %v, on record %q", version, place, got, w.Writes, w.onRecord(t))
			}
			if _, err := m.Show(t.Context(), "docker:web"); err == nil {
				t.Errorf("%s, %s: it is shown as if nothing were wrong", version, place)
			}
			all, err := m.OfKind(t.Context(), "docker", []string{webID})
			if err != nil || len(all) != 1 || all[0].State != Failed || all[0].Err == nil {
				t.Errorf("%s, %s: %+v, %v", version, place, all, err)
			}
			given := w.given(t, m)
			if err := m.PutGiven(t.Context(), &given); err == nil || given.State != Failed {
				t.Errorf("%s, %s: %s, %v", version, place, given.State, err)
			}
		}
	}
}

// A target that ends while it is compared is gone: its group, or the processes whose mounts it has.
func TestATargetThatEndsMeanwhile(t *testing.T) {
	lab.Unit(t)
	for _, what := range []string{"group", "process"} {
		w := newWorld(t, "v2")
		m := w.manager(t, firstPlans)
		its, err := w.host.Target(t.Context(), "docker:"+webID)
		if err != nil {
			t.Fatal(err)
		}
		ended := filepath.Join(w.host.Root, "proc/4900")
		if what == "group" {
			ended = w.groupOf(t, webID).Dir()
		}
		if err := os.RemoveAll(ended); err != nil {
			t.Fatal(err)
		}
		if got := m.Given(t.Context(), web, its); got.State != Gone || got.Err != nil {
			t.Errorf("%s: %s, %v", what, got.State, got.Err)
		}
	}
}

// A process ends by whose mounts a target was to be known, and another one of it is there: it is compared again.
func TestAProcessThatEndsMeanwhile(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	g := w.groupOf(t, webID)
	has := func(pid string) {
		if err := os.WriteFile(g.File("cgroup.procs"), []byte(pid+"\n"), 0o600); err != nil {
			t.Error(err)
		}
	}
	has("4999")
	its := targets.Target{Kind: "docker", Name: "web", Group: g}
	if got := m.Given(t.Context(), web, its); got.State != Gone {
		t.Errorf("without a process: %s, %v", got.State, got.Err)
	}
	m.GiveWay = func(context.Context) { has("4900") }
	if got := m.Given(t.Context(), web, its); got.State != Differs || len(got.Rows) != 2 {
		t.Errorf("%s, %v, %+v", got.State, got.Err, got.Rows)
	}
}

// What Docker lists and cannot find a moment later keeps its record: it is not gone before Docker lists it no more.
func TestWhatIsListedKeepsItsRecord(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	w.removed = true
	if got := w.apply(t, assigned); got != "docker:db db in-force" || len(w.onRecord(t)) != 2 {
		t.Errorf("%s, on record %q", got, w.onRecord(t))
	}
	w.list = `[{"Id":"` + dbID + `","Names":["/db"],"Labels":{"weir.plan":"db"}}]`
	if got := w.apply(t, assigned); got != "docker:db db in-force, docker:web none gone" || len(w.onRecord(t)) != 1 {
		t.Errorf("%s, on record %q", got, w.onRecord(t))
	}
}

// What weir show marks as a target's plan is said not to be known to be in force where it is not.
func TestMarkOfAPlaceThatIsMissing(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	dir := filepath.Join(w.host.Root, Dir)
	text := "plans: {lost: {on: [{path: /nowhere, write: 2MB/s}]}}\nassign: [{docker: web, plan: lost}]\n"
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	shown, err := w.manager(t, text).limits().ShowAll(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	notes := Mark(t.Context(), w.host, planfile.Read, &shown)
	if len(notes) != 1 || !strings.Contains(notes[0].Text, "docker:web has the limits of its plan lost: resolve /nowhere: ") {
		t.Errorf("%+v", notes)
	}
}
