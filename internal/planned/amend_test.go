package planned

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// saved is the file of the pod's record as it is now.
func (w *world) saved(t *testing.T) os.FileInfo {
	t.Helper()
	info, err := os.Stat(filepath.Join(w.host.Root, records, fileOf("pod:"+podUID)))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// keep does for the pod what the agent does.
func (w *world) keep(t *testing.T, m Manager) {
	t.Helper()
	if err := w.putAll(t, m); err != nil {
		t.Fatal(err)
	}
}

// A change says who asks for limits of a pod before, and who asks for the same ones then.
type change struct {
	before      string // the plans of the node
	was         live
	then        string
	is, restart live // and what is known when weird has started again
}

// Others ask for the same rates now: the API server does, where the node's plans did. It is on record by whose word the limits
// are in force, so they stay if weird starts again and has not read from the API server. It is written once.
func TestByWhoseWord(t *testing.T) {
	lab.Unit(t)
	none, five := map[string]string{}, map[string]string{"weir.io/write": "5M"}
	ofVolume := live{is: true, all: map[string]string{"weir.io/on.pvc-1": "write=5M"}}
	volume := live{is: true, all: none, volumes: []annotations.On{{Volume: "pvc-1", Limit: limit.Limit{WBPS: limit.PerSecond(5e6)}}}}
	ofNode, nothing := live{is: true, all: none}, live{unread: true, unreadVolumes: true}
	const nine, node = "plans: {a: {write: 9MB/s}}\nassign: [{pod: {name: web}, plan: a}]", "plans: {a: {write: 5MB/s}}\nassign: [{pod: {name: web}, plan: a}]"
	const small = "plans: {small: {write: 5MB/s}}\nallow-labels: [small]"
	const both, more = "plans: {a: {write: 5MB/s}, small: {write: 5MB/s}, big: {write: 9MB/s}}\n", "allow-labels: [small]\ndefault: big"
	for name, c := range map[string]change{
		"the namespace":                {node, ofNode, small, live{is: true, all: none, plan: "small"}, nothing},
		"the namespace, and a default": {both + "assign: [{pod: {name: web}, plan: a}]\n" + more, ofNode, both + more, live{is: true, all: none, plan: "small"}, live{unread: true}},
		"an annotation":                {node, ofNode, "plans: {}", live{is: true, all: five}, nothing},
		"an annotation and a plan":     {node, ofNode, nine, live{is: true, all: five}, live{unread: true}},
		"a volume":                     {"plans: {}", ofVolume, "plans: {}", volume, live{is: true, all: none, unreadVolumes: true}},
		"a volume, before the pods":    {"plans: {}", ofVolume, "plans: {}", volume, nothing},
	} {
		for _, way := range []string{"apply", "keep"} {
			t.Run(name+", "+way, func(t *testing.T) { c.happens(t, way) })
		}
	}
}

// happens makes the change by one apply or by what the agent does.
func (c change) happens(t *testing.T, way string) {
	w := newPods(t, nil)
	w.mount(t, "1", pvc1)
	step := func(text string, l live, dry bool) {
		t.Helper()
		m := w.manager(t, text)
		m.Config.Annotated, m.Live = true, &l
		if way == "keep" {
			w.keep(t, m)
		} else if r, err := m.Apply(t.Context(), dry); err != nil || dry && len(r.Steps()) != 1 {
			t.Fatalf("%v, %v", r.Steps(), err)
		}
	}
	step(c.before, c.was, false)
	limits, file := w.inForce(t, ""), w.saved(t)
	w.Writes = nil
	if way == "apply" {
		if step(c.then, c.is, true); !os.SameFile(file, w.saved(t)) {
			t.Error("a dry run has written the record")
		}
	}
	if step(c.then, c.is, false); os.SameFile(file, w.saved(t)) {
		t.Error("the record is as it was")
	}
	for range 2 {
		file = w.saved(t)
		if step(c.then, c.is, false); !os.SameFile(file, w.saved(t)) {
			t.Error("the record is written anew")
		}
	}
	for range 2 {
		if step(c.then, c.restart, false); !os.SameFile(file, w.saved(t)) {
			t.Error("the record is written anew before all is read")
		}
	}
	if got := w.inForce(t, ""); limits == "" || got != limits || len(w.Writes) != 0 {
		t.Errorf("%q, was %q: %v", got, limits, w.Writes)
	}
	step("plans: {}", live{is: true, all: map[string]string{}}, false)
	if got := w.inForce(t, ""); got != "" || len(w.onRecord(t)) != 0 {
		t.Errorf("nobody asks for limits: %q; on record %v", got, w.onRecord(t))
	}
}

// What was put at a container's start did not get onto record, as too much waited for that: the next look puts it there. The
// limits are not what others have set.
func TestLimitsOfAPodWithoutARecord(t *testing.T) {
	lab.Unit(t)
	all := map[string]string{"weir.io/write": "5M"}
	w := newPods(t, all)
	m := w.manager(t, "plans: {}")
	m.Config.Annotated = true
	its, err := w.host.Target(t.Context(), "pod:"+podUID)
	if err != nil {
		t.Fatal(err)
	}
	found := m.Given(t.Context(), targets.Listed{Kind: "pod", Name: "prod/web", Names: []string{"web"}, Namespace: "prod", UID: podUID, Annotations: all}, its)
	if err := m.PutGiven(t.Context(), &found); err != nil {
		t.Fatal(err)
	}
	limits := w.inForce(t, "")
	w.keep(t, m)
	r, err := recordOf(w.host.Root, "pod:"+podUID)
	if err != nil || r == nil || !r.Agent || r.Group == nil || *r.Group != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	w.keep(t, m) // does what else is to be done
	delete(all, "weir.io/write")
	m.Live = &live{unread: true}
	if w.keep(t, m); limits == "" || w.inForce(t, "") != limits {
		t.Errorf("%q, was %q", w.inForce(t, ""), limits)
	}
}

// Others may have set the limits that a plan of the node has: without a record, there is none of them later.
func TestLimitsOfOthersAreNotRecorded(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	r, err := recordOf(w.host.Root, "docker:"+webID)
	if err == nil {
		err = r.forget(w.host.Root)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := w.onRecord(t)
	if got := w.apply(t, assigned); got != "docker:web small in-force, docker:db db in-force" || len(w.onRecord(t)) != len(before) {
		t.Errorf("%s; on record %v, was %v", got, w.onRecord(t), before)
	}
}

// Between a look and the deed the rules of a newborn group were put on record: what is still to be done for it stays to be
// done.
func TestARecordIsWrittenMeanwhile(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	const other = "plans: {new: {write: 10MB/s}}\nassign: [{docker: web, plan: new}]\n"
	for _, meanwhile := range []bool{true, false} {
		m := w.manager(t, other)
		all, err := m.OfKind(t.Context(), "docker", []string{webID})
		if err != nil || len(all) != 1 || m.amended(&all[0]) == nil {
			t.Fatalf("%+v, %v", all, err)
		}
		r, err := recordOf(w.host.Root, "docker:"+webID)
		if err != nil {
			t.Fatal(err)
		}
		of := *r.Group
		if r.Group = new(uint64); meanwhile {
			err = r.save(w.host.Root)
		}
		if err == nil {
			err = m.Amend(t.Context(), &all[0])
		}
		if err != nil {
			t.Fatal(err)
		}
		left, err := recordOf(w.host.Root, "docker:"+webID)
		if err != nil || (left.Plan == "new") == meanwhile || (*left.Group == of) == meanwhile {
			t.Errorf("%t: %+v, %v", meanwhile, left, err)
		}
		if meanwhile {
			w.apply(t, assigned)
		}
	}
}

// A newborn group has its rules, and their record waits for the disk: it takes the place of the target's record, also if that
// was brought up to date meanwhile. What is still to be done stays on record.
func TestABirthIsRecordedLater(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	if err := errors.Join(w.groupOf(t, webID).SetRule(vda, limit.None), w.groupOf(t, webID).SetRule(vdb, limit.None)); err != nil {
		t.Fatal(err)
	}
	m := w.manager(t, assigned)
	its, err := w.host.Target(t.Context(), "docker:web")
	if err != nil {
		t.Fatal(err)
	}
	found := m.Given(t.Context(), web, its)
	b, done, err := m.BeginGiven(t.Context(), &found)
	if err != nil || !done || b == nil {
		t.Fatalf("%v, %v, %v", b, done, err)
	}
	if got := w.apply(t, "plans: {new: {write: 10MB/s}}\nassign: [{docker: web, plan: new}]\n"); !strings.HasPrefix(got, "docker:web new in-force") {
		t.Error(got)
	}
	if r, err := recordOf(w.host.Root, "docker:"+webID); err != nil || r.Plan != "new" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := b.Record(); err != nil {
		t.Fatal(err)
	}
	if r, err := recordOf(w.host.Root, "docker:"+webID); err != nil || *r.Group != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// weir plan apply does not know by whose word weird has limited a pod: it leaves the record as it is, whatever asks for the
// same rates by the node's plans.
func TestARecordOfTheAgent(t *testing.T) {
	lab.Unit(t)
	w := newPods(t, nil)
	m := w.manager(t, "plans: {small: {write: 5MB/s}}\nallow-labels: [small]")
	m.Config.Annotated, m.Live = true, &live{is: true, plan: "small"}
	w.keep(t, m)
	file := w.saved(t)
	m = w.manager(t, "plans: {a: {write: 5MB/s}}\nassign: [{pod: {name: web}, plan: a}]")
	m.Alone = true
	if r, err := m.Apply(t.Context(), false); err != nil || spell(r) != "pod:prod/web a in-force" || !os.SameFile(file, w.saved(t)) {
		t.Errorf("%s, %v", spell(r), err)
	}
}

// A record without a moment, as an older weir has left it, is given one. After a boot nothing is known to have been done by
// the record's weir, even if the limits are in force: all is done anew.
func TestARecordOfAnotherBoot(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	file := filepath.Join(w.host.Root, "proc/sys/kernel/random/boot_id")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("this\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.apply(t, assigned)
	r, err := recordOf(w.host.Root, "docker:"+webID)
	if err != nil || r.At.Boot != "this" || *r.Group == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	group := *r.Group
	for _, c := range []struct {
		at    moment
		group uint64
		then  string
	}{{moment{}, group, "in-force"}, {moment{Boot: "another", Since: 1}, 0, "changed"}} {
		r.At = c.at
		if err := r.saveOf(w.host.Root); err != nil {
			t.Fatal(err)
		}
		if got := w.apply(t, assigned); !strings.HasPrefix(got, "docker:web small in-force") || len(w.Writes) != 0 {
			t.Errorf("%+v: %s, %v", c.at, got, w.Writes)
		}
		if now, err := recordOf(w.host.Root, "docker:"+webID); err != nil || now.At.Boot != "this" || *now.Group != c.group {
			t.Errorf("%+v: %+v, %v", c.at, now, err)
		}
		if got := w.apply(t, assigned); !strings.HasPrefix(got, "docker:web small "+c.then) {
			t.Errorf("%+v: then %s", c.at, got)
		}
	}
}

// The limits are in force, and their record cannot be written: the target has not failed, and what is wrong is told all the
// same.
func TestARecordThatCannotBeWritten(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	draft := filepath.Join(w.host.Root, records, state.FileName("docker:"+webID)+".new")
	if err := os.MkdirAll(draft, 0o700); err != nil { // where the text is while it is written
		t.Fatal(err)
	}
	r, err := w.manager(t, "plans: {new: {write: 10MB/s}}\nassign: [{docker: web, plan: new}]\n").Apply(t.Context(), false)
	var record *RecordError
	if !errors.As(err, &record) || record.Target != "docker:web" || strings.Count(err.Error(), "docker:web") != 1 {
		t.Errorf("%v", err)
	}
	if !strings.HasPrefix(spell(r), "docker:web new in-force") || r.Targets[0].Err == nil {
		t.Errorf("%s", spell(r))
	}
	if got := w.limitOf(t, webID, vda); got != "write 10 MB/s" {
		t.Error(got)
	}
	// Where the limits have to change, nothing is in force that is not on record.
	r, err = w.manager(t, "plans: {new: {write: 5MB/s}}\nassign: [{docker: web, plan: new}]\n").Apply(t.Context(), false)
	if err == nil || !strings.HasPrefix(spell(r), "docker:web new failed") || w.limitOf(t, webID, vda) != "write 10 MB/s" {
		t.Errorf("%s, %v", spell(r), err)
	}
	// The limits change, and the record of those before stays with the new one.
	if err := os.Remove(draft); err != nil {
		t.Fatal(err)
	}
	w.Refuse = func(string, string) error { return os.MkdirAll(draft, 0o700) }
	r, err = w.manager(t, "plans: {new: {write: 5MB/s}}\nassign: [{docker: web, plan: new}]\n").Apply(t.Context(), false)
	if !errors.As(err, &record) || !strings.HasPrefix(spell(r), "docker:web new changed") || w.limitOf(t, webID, vda) != "write 5 MB/s" {
		t.Errorf("%s, %v", spell(r), err)
	}
}
