package keep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

const id = "3f2a9c1b5d7e8f901234567890abcdef3f2a9c1b5d7e8f901234567890abcdef"

var (
	vda = blkdev.Device{Number: blkdev.Number{Major: 254}, Node: "/dev/vda"}
	vdb = blkdev.Device{Number: blkdev.Number{Major: 254, Minor: 16}, Node: "/dev/vdb"}
)

func writes(n uint64) limit.Limit { return limit.Limit{WBPS: limit.PerSecond(n)} }

// open is a copy of a machine, with the path of a weir.
func open(t *testing.T, name string, files map[string]string) *host.Host {
	t.Helper()
	return hosttest.Open(t, name, files, host.Options{Program: func() (string, error) { return "/usr/bin/weir", nil }, Sockets: map[string]string{"docker": "unix:///x"}})
}

// group is a group of a copy; v1 and v2 have /batch.
func group(t *testing.T, h *host.Host) cgroupfs.Group {
	t.Helper()
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group("/batch")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func service(g cgroupfs.Group) targets.Target {
	return targets.Target{Kind: "unit", Name: "web.service", Group: g, Owner: targets.Owner{Kind: "systemd", Name: "web.service", Unit: "web.service"}}
}

func container(g cgroupfs.Group, unit string) targets.Target {
	return targets.Target{Kind: "docker", Name: "web", Group: g, Lasting: "docker:" + id, Owner: targets.Owner{Kind: "docker", Name: id[:12], Unit: unit}, Record: &targets.Record{By: "Docker"}}
}

func updating(t targets.Target) targets.Target {
	t.Record = &targets.Record{By: "Docker", Updates: true, Limits: []targets.Recorded{{Path: "/dev/vda", Device: vda.Number, Limit: writes(5)}}}
	return t
}

// Who keeps a limit depends on what the target is, and on the version of cgroups.
func TestOf(t *testing.T) {
	scopeUnit := "docker-" + id + ".scope"
	for _, c := range []struct {
		name    string
		target  targets.Target
		version cgroupfs.Version
		by      string
		paces   Paces
		refused string // why May refuses; empty: it does not
		class   fault.Class
		do      fault.Do
	}{
		{"a service, v2", service(cgroupfs.Group{}), cgroupfs.V2, "systemd", PaceFollows, "", 0, ""},
		{"a service, v1", service(cgroupfs.Group{}), cgroupfs.V1, "systemd", PaceStarts, "", 0, ""},
		{"a slice, v1", targets.Target{Kind: "unit", Name: "x.slice", Owner: targets.Owner{Unit: "x.slice"}}, cgroupfs.V1, "systemd", PaceStarts, "only at the start of a service; name a service", fault.NotPossible, ""},
		{"a slice, v2", targets.Target{Kind: "unit", Name: "x.slice", Owner: targets.Owner{Unit: "x.slice"}}, cgroupfs.V2, "systemd", PaceFollows, "", 0, ""},
		{"a scope", targets.Target{Kind: "unit", Name: "x.scope", Owner: targets.Owner{Unit: "x.scope"}}, cgroupfs.V2, "systemd", PaceFollows, "a scope ends with its processes", fault.WrongUse, fault.NameService},
		{"the root slice", targets.Target{Kind: "unit", Name: "-.slice"}, cgroupfs.V2, "", PaceLost, "the root group", fault.WrongUse, fault.DoNotKeep},
		{"a process", targets.Target{Kind: "pid", Name: "7"}, cgroupfs.V2, "", PaceLost, "a pid does not survive a boot, and nothing", fault.WrongUse, fault.NameUnit},
		{"a process of a unit", targets.Target{Kind: "pid", Name: "7", Owner: targets.Owner{Unit: "x.service"}}, cgroupfs.V2, "systemd", PaceLost, "its unit does; name the unit: unit:x.service", fault.WrongUse, ""},
		{"a process of a scope", targets.Target{Kind: "pid", Name: "7", Owner: targets.Owner{Unit: "x.scope"}}, cgroupfs.V2, "systemd", PaceLost, "nothing starts it again", fault.WrongUse, fault.NameUnit},
		{"a group", targets.Target{Kind: "cgroup", Name: "/x"}, cgroupfs.V1, "", PaceLost, "a cgroup does not survive", fault.WrongUse, fault.NameUnit},
		{"a container in a scope, v2", container(cgroupfs.Group{}, scopeUnit), cgroupfs.V2, "systemd", PaceFollows, "", 0, ""},
		{"a container in a scope, v1", container(cgroupfs.Group{}, scopeUnit), cgroupfs.V1, "weir", PaceStarts, "", 0, ""},
		{"a container without a scope", container(cgroupfs.Group{}, ""), cgroupfs.V2, "weir", PaceStarts, "", 0, ""},
		{"a container of a newer engine", updating(container(cgroupfs.Group{}, scopeUnit)), cgroupfs.V2, "Docker", PaceLost, "", 0, ""},
		{"the same, whose engine is not to keep it", WithoutEngine(updating(container(cgroupfs.Group{}, scopeUnit))), cgroupfs.V2, "systemd", PaceFollows, "", 0, ""},
		{"containerd's", targets.Target{Kind: "containerd", Name: "k8s.io/x", Lasting: "containerd:k8s.io/x"}, cgroupfs.V2, "weir", PaceStarts, "", 0, ""},
		{"a pod", targets.Target{Kind: "pod", Name: "a/b"}, cgroupfs.V2, "", PaceLost, "a pod does not survive", fault.WrongUse, fault.NameUnit},
	} {
		k := Of(open(t, "v2", nil), c.target, c.version)
		if k.By() != c.by || k.Paces() != c.paces {
			t.Errorf("%s: by %q, paces %d", c.name, k.By(), k.Paces())
		}
		err := k.May(t.Context())
		var refused *Refused
		switch {
		case c.refused == "" && err != nil, c.refused != "" && !errors.As(err, &refused):
			t.Errorf("%s: %v", c.name, err)
		case refused != nil && (!strings.Contains(refused.Why, c.refused) || fault.ClassOf(err) != c.class || refused.Remedy.Do != c.do || refused.Target != c.target.String()):
			t.Errorf("%s: %+v", c.name, refused)
		}
	}
	its := updating(container(cgroupfs.Group{}, ""))
	if other := WithoutEngine(its); other.Record.Updates || !its.Record.Updates {
		t.Errorf("WithoutEngine changes what it was given: %+v, %+v", its.Record, other.Record)
	}
}

// On cgroup v1 a restart of a unit loses its limit, and that is told; a scope of systemd's own has no restart.
func TestWhatARestartLoses(t *testing.T) {
	for _, c := range []struct {
		name  string
		owner targets.Owner
		told  bool
	}{
		{"a service", targets.Owner{Kind: "systemd", Unit: "x.service"}, true},
		{"a scope", targets.Owner{Kind: "systemd", Unit: "x.scope"}, false},
		{"a scope of a container", targets.Owner{Kind: "docker", Unit: "docker-" + id + ".scope"}, true},
	} {
		its := targets.Target{Kind: "pid", Name: "7", Owner: c.owner}
		notes := Of(open(t, "v1", nil), its, cgroupfs.V1).Lasts(hold.Plan{Changes: []hold.Change{{Device: vda.Number, Limit: writes(5)}}}, false)
		told := slices.ContainsFunc(notes, func(n note.Note) bool { return n.Code == "lost-at-restart" && strings.Contains(n.Text, c.owner.Unit) })
		if told != c.told || len(notes) > 1 {
			t.Errorf("%s: %+v", c.name, notes)
		}
	}
}

// wanted is a write limit on /data, which is on vdb.
func wanted(l limit.Limit, how limit.Hold) Wanted {
	return Wanted{Asked: []limit.Asked{{On: "/data", Limit: l}}, Hold: how,
		Places: []place.Expected{{Placed: place.Placed{Device: vdb, Limit: l}}}}
}

func keepIn(t *testing.T, k Keeper, w Wanted) (hold.Plan, Edit) {
	t.Helper()
	var plan hold.Plan
	edit, err := k.Keep(t.Context(), w, &plan)
	if err != nil {
		t.Fatal(err)
	}
	return plan, edit
}

func forgetIn(t *testing.T, k Keeper, only ...blkdev.Number) (hold.Plan, Edit) {
	t.Helper()
	var plan hold.Plan
	edit, err := k.Forget(t.Context(), only, &plan)
	if err != nil {
		t.Fatal(err)
	}
	return plan, edit
}

// entriesOf are those of a drop-in's text.
func entriesOf(t *testing.T, text string) []limit.Asked {
	t.Helper()
	entries, err := dropin.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func savedText(t *testing.T, entries ...limit.Asked) string {
	t.Helper()
	text, err := dropin.Text("web.service", "/usr/bin/weir", entries, func(limit.Asked) []string { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// systemd keeps limits of its units on v2, and is asked to forget what it keeps beside those in
// force.
func TestUnitOfV2(t *testing.T) {
	const setting = "etc/systemd/system.control/web.service.d/50-IOWriteBandwidthMax.conf"
	h := open(t, "v2", map[string]string{setting: "[Service]\nIOWriteBandwidthMax=/dev/vda 1000\n"})
	k := Of(h, service(group(t, h)), cgroupfs.V2)
	if plan, edit := keepIn(t, k, wanted(writes(5), "")); !plan.Persist || plan.File != nil || len(edit.Before)+len(edit.After) > 0 {
		t.Errorf("%+v, %+v", plan, edit)
	}
	plan := hold.Plan{Unit: "web.service"}
	edit, err := k.Forget(t.Context(), nil, &plan)
	if err != nil || !plan.Persist || len(edit.After) != 1 {
		t.Fatalf("%+v, %+v, %v", plan, edit, err)
	}
	steps, err := StepsOf(t.Context(), edit.After)
	if err != nil || len(steps) != 1 || !strings.HasSuffix(steps[0].File, setting) {
		t.Errorf("%+v, %v", steps, err)
	}
	plan.Changes = []hold.Change{{Device: vda.Number, Limit: limit.Limit{WBPS: limit.Unlimited}}}
	if steps, err := StepsOf(t.Context(), edit.After); err != nil || steps != nil {
		t.Errorf("the plan removes that rate: %+v, %v", steps, err)
	}
	if _, edit := forgetIn(t, k, vda.Number); edit.After != nil {
		t.Errorf("on one device: %+v", edit)
	}
	// Without a word, a limit that systemd keeps comes back.
	set := hold.Plan{Unit: "web.service", Changes: []hold.Change{{Device: vda.Number, Limit: writes(5)}}}
	if notes := k.Lasts(set, false); len(notes) != 1 || notes[0].Remedy.Do != fault.KeepChange || notes[0].Level != note.Warning {
		t.Errorf("%+v", notes)
	}
	set.Changes[0].Limit = limit.Limit{RBPS: limit.PerSecond(5)}
	if notes := k.Lasts(set, false); notes != nil {
		t.Errorf("of another rate: %+v", notes)
	}
	set.Persist = true
	if notes := k.Lasts(set, true); len(notes) != 1 || notes[0].Remedy.Do != fault.Clear {
		t.Errorf("%+v", notes)
	}
}

func TestNobodyKeeps(t *testing.T) {
	h := open(t, "v2", nil)
	its := targets.Target{Kind: "cgroup", Name: "/batch", Group: group(t, h)}
	k := Of(h, its, cgroupfs.V2)
	var plan hold.Plan
	if _, err := k.Keep(t.Context(), wanted(writes(1), ""), &plan); err == nil || plan.File != nil {
		t.Errorf("%v", err)
	}
	if plan, edit := forgetIn(t, k); plan.File != nil || plan.Persist || edit.After != nil {
		t.Errorf("%+v, %+v", plan, edit)
	}
	if notes := k.Lasts(plan, false); notes != nil {
		t.Errorf("that it ends with the group is plain: %+v", notes)
	}
	if in, err := By(t.Context(), h, its); in.File != "" || err != nil {
		t.Errorf("kept: %+v, %v", in, err)
	}
}

// A step fails, and what was done before is taken back, the last first.
func TestDoAll(t *testing.T) {
	var did []string
	one := func(name string, err error) Action {
		return &fake{name, func() (Done, error) {
			did = append(did, name)
			return Done{Undo: func() error { did = append(did, "-"+name); return nil }, Note: note.Infof("x", "%s", name)}, err
		}}
	}
	notes, err := DoAll(t.Context(), []Action{one("a", nil), one("b", nil)})
	if err != nil || len(notes) != 2 || !slices.Equal(did, []string{"a", "b"}) {
		t.Errorf("%v, %v, %v", did, notes, err)
	}
	did = nil
	broken := errors.New("broken")
	notes, err = DoAll(t.Context(), []Action{one("a", nil), one("b", nil), one("c", broken), one("d", nil)})
	if !errors.Is(err, broken) || len(notes) != 2 || !slices.Equal(did, []string{"a", "b", "c", "-b", "-a"}) {
		t.Errorf("%v, %v, %v", did, notes, err)
	}
	steps, err := StepsOf(t.Context(), []Action{one("a", nil), one("b", nil)})
	if err != nil || len(steps) != 2 || steps[1].Command != "b" {
		t.Errorf("%+v, %v", steps, err)
	}
}

type fake struct {
	name string
	do   func() (Done, error)
}

func (f *fake) Steps(context.Context) ([]hold.Step, error) {
	return []hold.Step{{Command: f.name}}, nil
}
func (f *fake) Do(context.Context) (Done, error) { return f.do() }

// A process or a group of a container stands for the container.
func TestAccount(t *testing.T) {
	gone := Saved{Target: "containerd:k8s.io/abc", Entries: []limit.Asked{{Limit: writes(1)}}}
	text, err := gone.Text()
	if err != nil {
		t.Fatal(err)
	}
	const dir = "sys/fs/cgroup"
	h := open(t, "v2", map[string]string{SavedPath(gone.Target): text, dir + "/docker/" + id + "/cgroup.procs": "", dir + "/k8s.io/abc/cgroup.procs": ""})
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/docker/" + id: "docker:" + id, "/k8s.io/abc": gone.Target, "/batch": ""} {
		g, err := io.Group(path)
		if err != nil {
			t.Fatal(err)
		}
		got := Account(t.Context(), h, targets.Target{Kind: "cgroup", Name: path, Group: g})
		if got.Lasting != want || want != "" && got.String() != want || got.Group != g {
			t.Errorf("%s: %+v", path, got)
		}
	}
	its := container(group(t, h), "")
	if got := Account(t.Context(), h, its); !reflect.DeepEqual(got, its) {
		t.Errorf("itself: %+v", got)
	}
}

func TestLockOfACopy(t *testing.T) {
	h := open(t, "v2", nil)
	unlock, err := Lock(t.Context(), h, true)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if _, err := os.Stat(filepath.Join(h.Root, SavedDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}

// Units of a copy of a machine are not installed in the machine that weir runs on.
func TestBootOfACopy(t *testing.T) {
	b := Boot{Root: "/nowhere", Feature: "restore at boot", Instead: "call weir restore"}
	for _, err := range []error{b.Install(t.Context(), map[string]string{"x.service": "[Unit]\n"}), b.Remove(t.Context(), "x.service")} {
		if !fault.IsUnsupported(err) || err.Error() != "restore at boot: systemd does not run here; call weir restore" {
			t.Errorf("%v", err)
		}
	}
}
