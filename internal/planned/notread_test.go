package planned

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// pvc1 is the mount that kubelet has for the volume pvc-1, which is on vdb.
const pvc1 = "41 21 254:16 / /var/lib/kubelet/pods/" + podUID + "/volumes/kubernetes.io~csi/pvc-1/mount rw - xfs /dev/vdb rw\n"

// weird starts again and has read nothing yet of what it has gone by: the limits stay, and are set again if somebody changes
// them. Once it has read, what it has read counts.
func TestWhatIsNotRead(t *testing.T) {
	lab.Unit(t)
	volumes := []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: limit.PerSecond(5e6)}}}
	none := map[string]string{}
	const ofFile = "plans: {a: {write: 9MB/s}}\nassign: [{pod: {name: web}, plan: a}]"
	const five, both = "254:16 rbps=- wbps=5000000 riops=- wiops=-;", "254:0 rbps=- wbps=5000000 riops=- wiops=-; 254:16 rbps=- wbps=5000000 riops=- wiops=-;"
	for name, c := range map[string]struct {
		before, after live
		runtimes      map[string]string // annotations that the container runtime knows
		text          string            // of the plans
		plan          string            // that the pod is said to have
		want, read    string            // in force before, and once all is read
	}{
		"a namespace":        {live{is: true, all: none, plan: "a"}, live{unread: true, unreadVolumes: true}, nil, "plans: {a: {write: 5MB/s}}\nallow-labels: [a]", "a", both, ""},
		"a volume":           {live{is: true, all: none, volumes: volumes}, live{unread: true, unreadVolumes: true}, nil, "plans: {}", "volumes", five, ""},
		"the volumes alone":  {live{is: true, all: none, volumes: volumes}, live{is: true, all: none, unreadVolumes: true}, nil, "plans: {}", "volumes", five, ""},
		"an annotation":      {live{is: true, all: map[string]string{"weir.io/write": "5M"}}, live{unread: true}, map[string]string{"weir.io/write": "10M"}, "plans: {}", "annotations", both, ""},
		"a volume on a plan": {live{is: true, all: none, volumes: volumes}, live{is: true, all: none, unreadVolumes: true}, nil, ofFile, "a", "254:0 rbps=- wbps=9000000 riops=- wiops=-; " + five, "254:0 rbps=- wbps=9000000 riops=- wiops=-; 254:16 rbps=- wbps=9000000 riops=- wiops=-;"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPods(t, c.runtimes)
			w.mount(t, "1", pvc1)
			apply := func(l live, want string) Target {
				t.Helper()
				w.Writes = nil
				m := w.manager(t, c.text)
				m.Config.Annotated, m.Live = true, &l
				r, err := m.Apply(t.Context(), false)
				if err != nil || len(r.Targets) != 1 {
					t.Fatalf("%+v, %v", r.Targets, err)
				}
				if got := w.inForce(t, ""); got != want {
					t.Errorf("%q, want %q", got, want)
				}
				return r.Targets[0]
			}
			apply(c.before, c.want)
			for range 2 { // the record is as before
				if one := apply(c.after, c.want); one.State != InForce || one.Choice.Name() != c.plan || len(w.Writes) != 0 {
					t.Errorf("%s %s, %v", one.State, one.Choice.Name(), w.Writes)
				}
				if err := os.WriteFile(filepath.Join(w.host.Root, "sys/fs/cgroup/kubepods/pod"+podUID, "io.max"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				apply(c.after, c.want)
			}
			apply(live{is: true, all: none}, c.read)
		})
	}
}

// As long as nothing is read, a plan of the files can lower a limit, and raises none, whatever it says later.
func TestPlansBeforeAllIsRead(t *testing.T) {
	lab.Unit(t)
	w := newPods(t, nil)
	l := &live{is: true, all: map[string]string{"weir.io/write": "5M"}}
	for i, step := range []struct {
		rate string
		read bool
		want string
	}{{"9MB/s", true, "5000000"}, {"9MB/s", false, "5000000"}, {"3MB/s", false, "3000000"}, {"20MB/s", false, "3000000"}, {"20MB/s", true, "5000000"}} {
		if l.unread, l.is = !step.read, step.read; step.read {
			l.all = map[string]string{"weir.io/write": "5M"}
		}
		m := w.manager(t, "plans: {a: {write: "+step.rate+"}}\nassign: [{pod: {name: web}, plan: a}]")
		m.Config.Annotated, m.Live = true, l
		if _, err := m.Apply(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got, want := w.inForce(t, ""), "254:0 rbps=- wbps="+step.want+" riops=- wiops=-; 254:16 rbps=- wbps="+step.want+" riops=- wiops=-;"; got != want {
			t.Errorf("step %d: %q, want %q", i, got, want)
		}
	}
}

// A container starts while nothing is read: the rules of its pod are not raised, and those of a new group of the pod are as
// before once the record is looked at.
func TestAStartBeforeAllIsRead(t *testing.T) {
	lab.Unit(t)
	runtimes := map[string]string{"weir.io/write": "10M"}
	w := newPods(t, runtimes)
	m := w.manager(t, "plans: {}")
	m.Config.Annotated, m.Live = true, &live{is: true, all: map[string]string{"weir.io/write": "5M"}}
	if _, err := m.Apply(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	m.Live = &live{unread: true}
	l := targets.Listed{Kind: "pod", Name: "prod/web", Names: []string{"web"}, Namespace: "prod", UID: podUID, Annotations: runtimes}
	given := func() Target {
		t.Helper()
		its, err := w.host.Target(t.Context(), "pod:"+podUID)
		if err != nil {
			t.Fatal(err)
		}
		return m.Given(t.Context(), l, its)
	}
	if found := given(); found.State != InForce {
		t.Errorf("%s: %+v", found.State, found.Rows)
	}
	if err := os.WriteFile(filepath.Join(w.host.Root, "sys/fs/cgroup/kubepods/pod"+podUID, "io.max"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found := given()
	b, done, err := m.BeginGiven(t.Context(), &found)
	if err != nil || !done || b == nil {
		t.Fatalf("%v, %v, %v", b, done, err)
	}
	if err := b.Record(); err != nil {
		t.Fatal(err)
	}
	all, err := m.OfKind(t.Context(), "pod", []string{podUID})
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := m.Put(t.Context(), &all[0]); err != nil {
		t.Fatal(err)
	}
	if got, want := w.inForce(t, ""), "254:0 rbps=- wbps=5000000 riops=- wiops=-; 254:16 rbps=- wbps=5000000 riops=- wiops=-;"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The limits of a pod's volumes alone are not read yet: all others are as the pod asks for them now.
func TestOnlyVolumesAreNotRead(t *testing.T) {
	lab.Unit(t)
	w := newPods(t, nil)
	w.mount(t, "1", pvc1)
	l := &live{is: true, volumes: []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: limit.PerSecond(5e6)}}}}
	for i, step := range []struct {
		asks   map[string]string
		unread bool
		want   string
	}{
		{map[string]string{"weir.io/write": "7M"}, false, "254:0 rbps=- wbps=7000000 riops=- wiops=-; 254:16 rbps=- wbps=5000000 riops=- wiops=-;"},
		{map[string]string{"weir.io/write": "9M"}, true, "254:16 rbps=- wbps=5000000 riops=- wiops=-; 254:0 rbps=- wbps=9000000 riops=- wiops=-;"},
		{map[string]string{}, true, "254:16 rbps=- wbps=5000000 riops=- wiops=-;"},
		{map[string]string{}, false, ""},
	} {
		if l.all, l.unreadVolumes = step.asks, step.unread; i > 0 {
			l.volumes = nil
		}
		m := w.manager(t, "plans: {}")
		m.Config.Annotated, m.Live = true, l
		if _, err := m.Apply(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got := w.inForce(t, ""); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// After a boot nothing of what is on record is in force, and its devices may be others: what is known counts.
func TestWhatIsNotReadAfterABoot(t *testing.T) {
	lab.Unit(t)
	w := newPods(t, nil)
	m := w.manager(t, "plans: {}")
	m.Config.Annotated, m.Live = true, &live{is: true, all: map[string]string{"weir.io/write": "5M"}}
	if _, err := m.Apply(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.host.Root, "proc/sys/kernel/random/boot_id")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("another\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	m.Live = &live{unread: true}
	if r, err := m.Apply(t.Context(), false); err != nil || w.inForce(t, "") != "" || len(w.onRecord(t)) != 0 {
		t.Errorf("%s, %v: %q; on record: %v", spell(r), err, w.inForce(t, ""), w.onRecord(t))
	}
}
