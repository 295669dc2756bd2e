package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/state"
)

// A place of a plan is not there: the target's limits stay as they are, it is told why they are not the plan's, and it is
// tried again.
func TestAPlaceThatIsMissingIsTold(t *testing.T) {
	k, kernel, _ := newSource(t, &docker{}, config)
	k.opened = time.Now() // the host takes rules: it is not opened anew
	core := reconcile.NewCore()
	look := func() reconcile.Target {
		t.Helper()
		all, err := k.Look(t.Context(), nil)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	one := look()
	if why := core.Decide(time.Now(), one); why != reconcile.New {
		t.Fatal(why)
	}
	if err := k.Put(t.Context(), one.Key); err != nil {
		t.Fatal(err)
	}
	core.Done(time.Now(), one.Key, nil)
	read, err := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte("plans: {small: {on: [{path: /nowhere, write: 2MB/s}]}}\nassign: [{docker: web, plan: small}]\n")}})
	if err != nil {
		t.Fatal(err)
	}
	k.options.Plans.Set(read)
	writes := len(kernel.Writes)
	if one = look(); core.Decide(time.Now(), one) != reconcile.None || !strings.Contains(core.News(one.Key), "resolve /nowhere: no such file or directory") || len(kernel.Writes) != writes {
		t.Errorf("%+v, %v", one, kernel.Writes[writes:])
	}
	if all, _ := core.Status(); len(all) != 1 || all[0].State != reconcile.Failed || core.Due("docker").IsZero() {
		t.Errorf("%+v", all)
	}
}

// A plan has gone from the scope that systemd made for a container to the container: the source of units leaves the limits
// to it, with their record, and has no such target any more.
func TestAPlanMovesToAnotherKind(t *testing.T) {
	k, _, _ := newSource(t, &docker{}, config)
	k.opened = time.Now() // the host takes rules: it is not opened anew
	all, err := k.Look(t.Context(), nil)
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := k.Put(t.Context(), all[0].Key); err != nil {
		t.Fatal(err)
	}
	scope, cgroups, records := "docker-"+webID+".scope", filepath.Join(k.host.Root, "sys/fs/cgroup"), filepath.Join(k.host.Root, "var/lib/weir/plans")
	of := func(target string) string { return filepath.Join(records, state.FileName(target)+state.Ready) }
	text, err := os.ReadFile(of("docker:" + webID))
	if err := errors.Join(err, os.WriteFile(of("unit:"+scope), []byte(strings.Replace(string(text), `"docker:`+webID, `"unit:`+scope, 1)), 0o600), os.Remove(of("docker:"+webID)),
		os.Mkdir(cgroups+"/system.slice", 0o755), os.Rename(cgroups+"/docker/"+webID, cgroups+"/system.slice/"+scope), os.MkdirAll(filepath.Join(k.host.Root, "run/systemd/system"), 0o755),
		os.WriteFile(filepath.Join(k.host.Root, "proc/4900/cgroup"), []byte("0::/system.slice/"+scope+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(cgroups + "/system.slice/" + scope + "/io.max")
	if err != nil || len(rules) == 0 {
		t.Fatalf("%q, %v", rules, err)
	}
	units := &Kind{kind: "unit", options: k.options}
	if all, err := units.Look(t.Context(), nil); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := units.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadFile(cgroups + "/system.slice/" + scope + "/io.max")
	if err != nil || string(left) != string(rules) {
		t.Errorf("%q, %v; want %q", left, err, rules)
	}
	if entries, err := os.ReadDir(records); err != nil || len(entries) != 1 || filepath.Join(records, entries[0].Name()) != of("docker:"+webID) {
		t.Errorf("on record %v, %v", entries, err)
	}
}

// Another plan asks for the same rates: a look has that on record, and nothing is left to be put. A record that cannot be
// written keeps no other target from its look.
func TestALookAmendsTheRecord(t *testing.T) {
	k, kernel, _ := newSource(t, &docker{}, config)
	k.opened = time.Now() // the host takes rules: it is not opened anew
	look := func() reconcile.Target {
		t.Helper()
		all, err := k.Look(t.Context(), []string{webID})
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0]
	}
	if err := k.Put(t.Context(), look().Key); err != nil {
		t.Fatal(err)
	}
	other, err := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte(strings.ReplaceAll(config, "small", "other"))}})
	if err != nil {
		t.Fatal(err)
	}
	k.options.Plans.Set(other)
	kernel.Writes = nil
	if one := look(); one.Differs() || one.Plan != "other" || len(kernel.Writes) != 0 {
		t.Errorf("%+v, %v", one, kernel.Writes)
	}
	text, err := os.ReadFile(filepath.Join(k.host.Root, "var/lib/weir/plans/docker%3A"+webID+".json"))
	if err != nil || !strings.Contains(string(text), `"plan":"other"`) {
		t.Errorf("on record: %s, %v", text, err)
	}
	if !isBeside(fmt.Errorf("x: %w", &planned.RecordError{Target: "x", Err: os.ErrPermission})) {
		t.Error("a record that is not written has all looked at again")
	}
}
