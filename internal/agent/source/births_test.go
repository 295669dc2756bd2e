package source

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/targets"
)

// newBirths are those of newSource's machine, which have looked ahead.
func newBirths(t *testing.T, config string) (b *Births, k *Kind, kernel *hosttest.Kernel, told chan string) {
	t.Helper()
	k, kernel, _ = newSource(t, &docker{}, config)
	told = make(chan string, 16)
	b = NewBirths(k.options, slog.New(slog.DiscardHandler), func(kind, name string) { told <- kind + ":" + name })
	k.options.Births = b
	now, _ := k.options.Plans.Now()
	if err := b.prepare(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	return b, k, kernel, told
}

func (b *Births) putAt(t *testing.T, k *Kind, path string) {
	t.Helper()
	io, err := k.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group(path)
	if err != nil {
		t.Fatal(err)
	}
	its, err := b.put(&planned.Manager{Host: k.host}, birth{path, namesOf(g, true)})
	if err != nil {
		t.Fatal(err)
	}
	if its == nil {
		return
	}
	if err := its.Record(); err != nil {
		t.Fatal(err)
	}
}

// A container that was made before has its rule with its birth; who looks at it then finds a new
// target, on which everything else is still to be done.
func TestABirthIsServed(t *testing.T) {
	b, k, kernel, _ := newBirths(t, config)
	b.putAt(t, k, "/docker/"+webID)
	if len(kernel.Writes) != 0 {
		t.Errorf("nobody knows the container yet: %v", kernel.Writes)
	}
	b.Learn("docker", true, targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID}, targets.Listed{Kind: "docker", Name: "db", Names: []string{"db"}, ID: dbID})
	b.putAt(t, k, "/docker/"+dbID)
	if len(kernel.Writes) != 0 {
		t.Errorf("it has no plan: %v", kernel.Writes)
	}
	b.putAt(t, k, "/docker/"+webID)
	if len(kernel.Writes) == 0 {
		t.Fatal("nothing is written")
	}
	all, err := k.Look(t.Context(), []string{webID})
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, r := range all[0].Rates {
		if r.Now != limit.None {
			t.Errorf("%v: %v is told as its former limit", r.Device, r.Now)
		}
	}
	core := reconcile.NewCore()
	early := all[0] // who looks between the rule and its record finds it in force
	early.Begun, early.Rates = false, slices.Clone(early.Rates)
	for i := range early.Rates {
		early.Rates[i].Now = early.Rates[i].Want
	}
	if why := core.Decide(time.Now(), early); why != reconcile.None {
		t.Error(why)
	}
	if why := core.Decide(time.Now(), all[0]); why != reconcile.New {
		t.Error(why)
	}
	if err := k.Put(t.Context(), all[0].Key); err != nil {
		t.Fatal(err)
	}
	core.Done(time.Now(), all[0].Key, nil)
	if all, err = k.Look(t.Context(), []string{webID}); err != nil || len(all) != 1 || core.Decide(time.Now(), all[0]) != reconcile.None {
		t.Errorf("%+v, %v", all, err)
	}
	if _, counts := core.Status(); counts != (reconcile.Counts{}) {
		t.Errorf("%+v", counts)
	}

	kernel.Writes = nil
	b.Forget("docker", webID)
	b.putAt(t, k, "/docker/"+webID)
	if len(kernel.Writes) != 0 {
		t.Error("it is known for ever")
	}
}

// Of many targets all have their rules before the first Put, which still has everything else to do.
func TestManyHaveTheirRulesFirst(t *testing.T) {
	d := &docker{}
	k, kernel, _ := newSource(t, d, "plans: {small: {write: 1MB/s}}\ndefault: small\n")
	k.opened = time.Now() // the host takes rules: it is not opened anew
	all, err := k.Look(t.Context(), nil)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if len(kernel.Writes) != 4 {
		t.Errorf("%v, want a rule of both on both disks", kernel.Writes)
	}
	core := reconcile.NewCore()
	for _, one := range all {
		if why := core.Decide(time.Now(), one); why != reconcile.New {
			t.Errorf("%s: %s", one.Name, why)
		}
		if err := k.Put(t.Context(), one.Key); err != nil {
			t.Error(err)
		}
		core.Done(time.Now(), one.Key, nil)
	}
	if len(kernel.Writes) != 4 {
		t.Errorf("%v: they are written again", kernel.Writes)
	}
	if all, err = k.Look(t.Context(), nil); err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, one := range all {
		if why := core.Decide(time.Now(), one); why != reconcile.None {
			t.Errorf("%s: %s", one.Name, why)
		}
	}
}

// A unit's name is known by its group.
func TestABirthOfAUnit(t *testing.T) {
	b, k, kernel, _ := newBirths(t, "plans: {small: {write: 1MB/s, on: [{path: '254:16', write: 1MB/s}]}}\nassign: [{unit: 'batch-*.service', plan: small}]\n")
	for _, name := range []string{"batch-1.service", "other.service"} {
		dir := filepath.Join(k.host.Root, "sys/fs/cgroup/system.slice", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"io.max": "", "cgroup.controllers": "io\n"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.putAt(t, k, "/system.slice/other.service")
	if len(kernel.Writes) != 0 {
		t.Errorf("%v", kernel.Writes)
	}
	b.putAt(t, k, "/system.slice/batch-1.service")
	if len(kernel.Writes) == 0 {
		t.Error("nothing is written")
	}
}

// On v2 crun puts the limits of a Podman container on a group below its group. The group above gets
// none, which nobody would take away.
func TestTheOuterGroupOfPodmanGetsNothing(t *testing.T) {
	b, k, _, _ := newBirths(t, "plans: {small: {write: 1MB/s}}\nassign: [{podman: web, plan: small}]\n")
	b.Learn("podman", true, targets.Listed{Kind: "podman", Name: "web", Names: []string{"web"}, ID: webID})
	io, err := k.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	now, _ := k.options.Plans.Now()
	for path, want := range map[string]bool{"/machine.slice/libpod-" + webID + ".scope": false, "/machine.slice/libpod-" + webID + ".scope/container": true} {
		g, err := io.Group(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, is := b.choose(planned.Manager{Host: k.host, Config: now}, g, namesOf(g, true)); is != want {
			t.Errorf("%s: %v", path, is)
		}
	}
}

// A newborn group has a rule that its plan does not have: it is to go, and is told of as no change of others.
func TestARuleTooManyGoes(t *testing.T) {
	one := asTarget(planned.Target{Choice: plans.Choice{Plan: "small"}, Begun: true, Rows: []planned.Device{{Now: limit.None.With(limit.WBPS, limit.PerSecond(1)), Plan: limit.None}}})
	if why := reconcile.NewCore().Decide(time.Now(), one); why != reconcile.New {
		t.Errorf("%q", why)
	}
}

// A volume that nothing has mounted is no limit that is in force.
func TestAVolumeThatIsNotThere(t *testing.T) {
	one := asTarget(planned.Target{Choice: plans.Choice{Plan: "small"}, State: planned.InForce, Unfound: []string{"data", "cache"}})
	core := reconcile.NewCore()
	if why := core.Decide(time.Now(), one); why != reconcile.None {
		t.Errorf("%q", why)
	}
	if all, _ := core.Status(); len(all) != 1 || !strings.Contains(all[0].Finding, "the volume data, cache,") {
		t.Errorf("%+v", all)
	}
}

// As long as the rules of new plans are not known, a birth gets none of the former plans.
func TestABirthBetweenPlans(t *testing.T) {
	b, k, kernel, _ := newBirths(t, config)
	b.Learn("docker", true, targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID})
	k.options.Plans.Set(&plans.Config{Default: plans.None})
	if b.putAt(t, k, "/docker/"+webID); len(kernel.Writes) != 0 {
		t.Errorf("%v", kernel.Writes)
	}
}

// Births wait for no disk: while nobody puts one on record, the next one is served. Who looks is told of it once it
// is on record, or if the disk hangs for long.
func TestBirthsWaitForNoDisk(t *testing.T) {
	b, k, kernel, told := newBirths(t, config)
	b.Learn("docker", true, targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID}, targets.Listed{Kind: "docker", Name: "db", Names: []string{"web-2"}, ID: dbID})
	b.begun = make(chan begun, 1)
	for i, id := range []string{webID, webID} { // the second: its group was born anew
		its, err := b.put(&planned.Manager{Host: k.host}, birth{"/docker/" + id, nil})
		if err != nil || its == nil || len(kernel.Writes) == 0 {
			t.Fatalf("%v, %v: %q", its, err, kernel.Writes)
		}
		b.hand(its, birth{names: []named{{"docker", id}}})
		if want := i; len(told) != want || len(b.begun) != 1 || b.left != (i == 1) {
			t.Errorf("birth %d: told of %d, %d wait, left: %v", i, len(told), len(b.begun), b.left)
		}
		for _, w := range kernel.Writes {
			if err := os.WriteFile(w.File, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kernel.Writes = nil
	}
	file := filepath.Join(k.host.Root, "var/lib/weir/plans")
	if _, err := os.Stat(file); err == nil {
		t.Error("it is on record before that")
	}
	<-told
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { b.record(ctx); close(done) }()
	if all, got := <-told, <-told; all != ":" || got != "docker:"+webID { // of those that were left, and of this one
		t.Error(all, got)
	}
	if all, err := os.ReadDir(file); err != nil || len(all) == 0 || b.left {
		t.Errorf("on record are %v (%v); left: %v", all, err, b.left)
	}
	stop()
	<-done
}

// What was left stays so until it is on record, also if the host cannot be opened meanwhile.
func TestLeftBirthsAreTriedAgain(t *testing.T) {
	b, k, _, told := newBirths(t, config)
	b.Learn("docker", true, targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID})
	its, err := b.put(&planned.Manager{Host: k.host}, birth{"/docker/" + webID, nil})
	if err != nil || its == nil {
		t.Fatalf("%v, %v", its, err)
	}
	b.left = true
	b.Options.Open = func() (*host.Host, error) { return nil, errors.New("closed") }
	b.hand(its, birth{names: []named{{"docker", webID}}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { b.record(ctx); close(done) }()
	<-told
	stop()
	<-done
	if !b.left {
		t.Error("what could not be put on record is forgotten")
	}
}

// What is known of containers is bounded in bytes: one with large labels takes no other's place.
func TestKnownIsBounded(t *testing.T) {
	var k known
	config := readPlans(t, "plans: {a: {write: 1MB/s}}\nassign: [{label: {l: x}, plan: a}]\n")
	one := func(id string, label int) targets.Listed {
		return targets.Listed{ID: id, Names: []string{id}, Labels: map[string]string{"l": strings.Repeat("x", label)}}
	}
	k.learn("docker", one("big", listedBytes), config)
	if _, ok, is := k.of("docker", "big", config); ok || !is || k.bytes != len("big") {
		t.Error("more is known of one that is too large than that it is there")
	}
	large := listedBytes - 100
	for i := range knownBytes/large + 10 {
		k.learn([]string{"docker", "podman"}[i%2], one(strconv.Itoa(i), large), config)
	}
	if n := len(k.kinds["docker"]) + len(k.kinds["podman"]); k.bytes > knownBytes || n < knownBytes/listedBytes {
		t.Errorf("%d are known, with %d bytes", n, k.bytes)
	}
	k.learn("docker", one("new", large), config)
	if _, ok, _ := k.of("docker", "new", config); ok {
		t.Error("there was no place")
	}
	k.learn("docker", one("0", 1), config) // it was renamed
	k.learn("docker", one("new", large-1000), config)
	if _, ok, _ := k.of("docker", "new", config); !ok {
		t.Error("there is a place")
	}
	k.forget("podman", "1")
	k.forgetAll("docker")
	k.forgetAll("podman")
	if k.bytes != 0 {
		t.Errorf("%d bytes of nothing", k.bytes)
	}
	for i := range knownMost + 5 {
		k.learn("docker", one(strconv.Itoa(i), 1), config)
	}
	if n := len(k.kinds["docker"]); n != knownMost {
		t.Errorf("%d are known", n)
	}
}

// What could not be put on record is, once that is possible, without another birth. Everything is looked at then: a look
// in between has found the rules in force, and no record of what is still to be done.
func TestLeftBirthsAreRecordedLater(t *testing.T) {
	b, k, _, told := newBirths(t, config)
	b.retry = time.Millisecond
	b.Learn("docker", true, targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID})
	its, err := b.put(&planned.Manager{Host: k.host}, birth{"/docker/" + webID, nil})
	if err != nil || its == nil {
		t.Fatalf("%v, %v", its, err)
	}
	dir := filepath.Join(k.host.Root, "var/lib/weir")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Dir(dir), 0o700), os.WriteFile(dir, nil, 0o600)); err != nil { // a disk that is full
		t.Fatal(err)
	}
	tries := 0
	b.Options.Open = func() (*host.Host, error) {
		if tries++; tries < 3 {
			return nil, errors.New("closed")
		}
		return k.options.Open()
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { b.record(ctx); close(done) }()
	b.hand(its, birth{names: []named{{"docker", webID}}})
	if got := <-told; got != "docker:"+webID {
		t.Error(got)
	}
	select {
	case got := <-told:
		if got != ":" {
			t.Error(got)
		}
	case <-time.After(patience):
		t.Error("it is not tried again")
	}
	stop()
	<-done
	if tries != 3 || b.isLeft() {
		t.Errorf("%d tries, left: %v", tries, b.isLeft())
	}
}
