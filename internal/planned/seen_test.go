package planned

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// hide has processes see a device no more.
func (w *world) hide(t *testing.T, device string, pids ...string) {
	t.Helper()
	for _, pid := range pids {
		file := filepath.Join(w.host.Root, "proc", pid, "mountinfo")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var left string
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, " "+device+" ") {
				left += line
			}
		}
		if left == string(text) {
			t.Fatalf("process %s has no %s", pid, device)
		}
		if err := os.WriteFile(file, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The processes of a pod hide a disk from weir, by other mounts: their limit on it stays, for one of them can have it still.
// It changes with the plan, and goes with it, and with the disk.
func TestAHiddenDisk(t *testing.T) {
	lab.Unit(t)
	const of = "assign: [{pod: {name: web}, plan: a}]\n"
	w := newPods(t, map[string]string{})
	for i, step := range []struct {
		do               func()
		plans, then, now string
	}{
		{nil, "plans: {a: {write: 9MB/s}}\n" + of, "a changed", "254:0 rbps=- wbps=9000000 riops=- wiops=-; 254:16 rbps=- wbps=9000000 riops=- wiops=-;"},
		{func() { w.hide(t, "/dev/vdb", "4900", "4910") }, "plans: {a: {write: 9MB/s}}\n" + of, "a in-force", "254:0 rbps=- wbps=9000000 riops=- wiops=-; 254:16 rbps=- wbps=9000000 riops=- wiops=-;"},
		{nil, "plans: {a: {write: 4MB/s, on: [{path: '254:16', read: 1MB/s}]}}\n" + of, "a changed", "254:0 rbps=- wbps=4000000 riops=- wiops=-; 254:16 rbps=1000000 wbps=4000000 riops=- wiops=-;"},
		{nil, "plans: {a: {on: [{path: '254:0', write: 3MB/s}]}}\n" + of, "a changed", "254:0 rbps=- wbps=3000000 riops=- wiops=-;"},
		{nil, "plans: {a: {write: 9MB/s}}\n" + of, "a changed", "254:0 rbps=- wbps=9000000 riops=- wiops=-; 254:16 rbps=- wbps=9000000 riops=- wiops=-;"},
		{func() { w.pull(t, "254:16", "254:0 rbps=max wbps=9000000 riops=max wiops=max\n") }, "plans: {a: {write: 9MB/s}}\n" + of, "a in-force", "254:0 rbps=- wbps=9000000 riops=- wiops=-;"},
		{nil, "plans: {a: {write: 9MB/s}}\n", "none changed", ""},
	} {
		if step.do != nil {
			step.do()
		}
		if got := w.apply(t, step.plans); got != "pod:prod/web "+step.then || w.inForce(t, "") != step.now {
			t.Errorf("step %d: %s; it has %q, want %q", i, got, w.inForce(t, ""), step.now)
		}
	}
	if left := w.onRecord(t); len(left) != 0 {
		t.Errorf("on record: %v", left)
	}
}

// pull takes a disk away, with the rule that the kernel has for it.
func (w *world) pull(t *testing.T, device, left string) {
	t.Helper()
	if err := errors.Join(os.Remove(filepath.Join(w.host.Root, "sys/dev/block", device)),
		os.WriteFile(filepath.Join(w.host.Root, "sys/fs/cgroup/kubepods/pod"+podUID, "io.max"), []byte(left), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// So does a container of an engine. Another group of it, after its restart, has what its processes have mounted then.
func TestAHiddenDiskOfAContainer(t *testing.T) {
	lab.Unit(t)
	for _, version := range []string{"v1", "v2"} {
		w := newWorld(t, version)
		const text = twoPlans + "assign: [{docker: web, plan: small}]\n"
		w.apply(t, text)
		w.hide(t, "/dev/vdb", "4900")
		if got := w.apply(t, text); !strings.HasPrefix(got, "docker:web small in-force") || len(w.Writes) != 0 {
			t.Errorf("%s: %s, %v", version, got, w.Writes)
		}
		// An older weir has not noted what was mounted, and its record says it for the same plan.
		r, err := recordOf(w.host.Root, "docker:"+webID)
		if err != nil || r == nil || r.Seen == nil {
			t.Fatalf("%+v, %v", r, err)
		}
		r.Seen = nil
		if err := r.save(w.host.Root); err != nil {
			t.Fatal(err)
		}
		if got := w.apply(t, text); !strings.HasPrefix(got, "docker:web small in-force") || len(w.Writes) != 0 {
			t.Errorf("%s: of an older weir: %s, %v", version, got, w.Writes)
		}
		// After a boot the same numbers are of other groups and devices.
		r.At.Boot = "another"
		if err := r.saveOf(w.host.Root); err != nil {
			t.Fatal(err)
		}
		m := w.manager(t, text)
		if all, err := m.OfKind(t.Context(), "docker", []string{webID}); err != nil || len(all) != 1 || all[0].State != Differs || len(all[0].Rows) != 2 || all[0].Rows[1].Plan.Bounds() {
			t.Errorf("%s: of another boot: %+v, %v", version, all, err)
		}
		dir := w.groupOf(t, webID).Dir()
		if err := errors.Join(os.CopyFS(dir+".new", os.DirFS(dir)), os.Rename(dir, dir+".old"), os.Rename(dir+".new", dir)); err != nil { // another inode
			t.Fatal(err)
		}
		if got := w.apply(t, text); !strings.HasPrefix(got, "docker:web small changed") || w.limitOf(t, webID, vdb) != "no rate named" || w.limitOf(t, webID, vda) != "write 10 MB/s" {
			t.Errorf("%s: another group: %s; %s, %s", version, got, w.limitOf(t, webID, vda), w.limitOf(t, webID, vdb))
		}
	}
}

// What waits for a container's start does not read records: it leaves a rule on a disk that it does not see, and what was
// seen before stays known.
func TestAHiddenDiskAtAStart(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	const of = "assign: [{docker: web, plan: small}]\n"
	w.apply(t, "plans: {small: {write: 1MB/s}}\n"+of)
	w.hide(t, "/dev/vdb", "4900")
	if found := w.given(t, w.manager(t, "plans: {small: {write: 1MB/s}}\n"+of)); found.State != InForce {
		t.Errorf("%s: %+v", found.State, found.Rows)
	}
	m := w.manager(t, "plans: {small: {write: 3MB/s}}\n"+of)
	found := w.given(t, m)
	b, done, err := m.BeginGiven(t.Context(), &found)
	if err != nil || !done || b == nil {
		t.Fatalf("%v, %v, %v", b, done, err)
	}
	if err := b.Record(); err != nil {
		t.Fatal(err)
	}
	if a, b := w.limitOf(t, webID, vda), w.limitOf(t, webID, vdb); a != "write 3 MB/s" || b != "write 1 MB/s" {
		t.Errorf("%s; %s", a, b)
	}
	all, err := m.OfKind(t.Context(), "docker", []string{webID})
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := m.Put(t.Context(), &all[0]); err != nil {
		t.Fatal(err)
	}
	if a, b := w.limitOf(t, webID, vda), w.limitOf(t, webID, vdb); a != "write 3 MB/s" || b != "write 3 MB/s" {
		t.Errorf("%s; %s", a, b)
	}
}

// The containers of a pod can have different disks at one path: each has the limit, whichever container is looked at first.
// One has none there, which is no error as long as another has.
func TestOnePathWithDisksOfItsOwn(t *testing.T) {
	lab.Unit(t)
	for name, c := range map[string]struct{ mount, want string }{
		"two disks":          {"440 430 254:1 /x /data rw - ext4 /dev/vda1 rw\n", "254:16 rbps=- wbps=5000000 riops=- wiops=-; 254:0 rbps=- wbps=5000000 riops=- wiops=-;"},
		"a disk, and memory": {"440 430 0:50 / /data rw - tmpfs tmpfs rw\n", "254:16 rbps=- wbps=5000000 riops=- wiops=-;"},
	} {
		for _, reversed := range []bool{false, true} {
			w := newPods(t, map[string]string{"weir.io/on.data": "path=/data write=5M"})
			w.hide(t, "/dev/vdb", "4910")
			w.mount(t, "4910", c.mount)
			m := w.manager(t, "")
			m.Config.Annotated = true
			its, err := w.host.Target(t.Context(), "pod:"+podUID)
			if err != nil || len(its.Firsts) != 2 {
				t.Fatalf("%+v, %v", its, err)
			}
			if reversed {
				slices.Reverse(its.Firsts)
			}
			l := targets.Listed{Kind: "pod", Name: "prod/web", Names: []string{"web"}, Namespace: "prod", UID: podUID, Annotations: map[string]string{"weir.io/on.data": "path=/data write=5M"}}
			found := m.Given(t.Context(), l, its)
			if err := m.PutGiven(t.Context(), &found); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got, want := strings.Split(strings.TrimSuffix(w.inForce(t, ""), ";"), "; "), strings.Split(strings.TrimSuffix(c.want, ";"), "; ")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s, reversed %t: %q, want %q", name, reversed, got, want)
			}
		}
	}
}

// A volume with a limit of its own that is hidden keeps it, as long as the annotation is there.
func TestAHiddenVolume(t *testing.T) {
	lab.Unit(t)
	all := map[string]string{"weir.io/write": "5M", "weir.io/on.data": "path=/data write=2M"}
	w := newPods(t, all)
	apply := func(want string) {
		t.Helper()
		m := w.manager(t, "")
		m.Config.Annotated = true
		r, err := m.Apply(t.Context(), false)
		if err != nil || len(r.Targets) != 1 || r.Targets[0].Unfound != nil || w.inForce(t, "") != want {
			t.Errorf("%+v, %v: %q, want %q", r.Targets, err, w.inForce(t, ""), want)
		}
	}
	apply("254:0 rbps=- wbps=5000000 riops=- wiops=-; 254:16 rbps=- wbps=2000000 riops=- wiops=-;")
	for _, pid := range []string{"4900", "4910"} { // the disk is there still, at another place
		w.hide(t, "/data", pid)
		w.mount(t, pid, "441 430 254:16 / /elsewhere rw,relatime - xfs /dev/vdb rw\n")
	}
	apply("254:0 rbps=- wbps=5000000 riops=- wiops=-; 254:16 rbps=- wbps=2000000 riops=- wiops=-;")
	w.hide(t, "/elsewhere", "4900", "4910")
	apply("254:0 rbps=- wbps=5000000 riops=- wiops=-; 254:16 rbps=- wbps=2000000 riops=- wiops=-;")
	delete(all, "weir.io/on.data")
	apply("254:0 rbps=- wbps=5000000 riops=- wiops=-; 254:16 rbps=- wbps=5000000 riops=- wiops=-;")
}

// What is on record of a group says the same when it is read again.
func TestSeenIsRead(t *testing.T) {
	lab.Unit(t)
	root := t.TempDir()
	one := record{Target: "pod:" + podUID, Name: "pod:prod/web", Plan: "a", Seen: &seen{Group: 7, Disks: []blkdev.Number{vda, vdb},
		Volumes: []seenVolume{{Name: "pvc-1", Driver: true, Device: vdb}, {Name: "data", Path: "/data", Device: vda}}}}
	if err := one.save(root); err != nil {
		t.Fatal(err)
	}
	r, err := recordOf(root, one.Target)
	if err != nil || !r.is(&one) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, other := range []*seen{nil, {Group: 8, Disks: one.Seen.Disks, Volumes: one.Seen.Volumes}, {Group: 7, Disks: one.Seen.Disks}, {Group: 7, Volumes: one.Seen.Volumes}} {
		its := one
		if its.Seen = other; r.is(&its) || !r.agrees(&its) {
			t.Errorf("%+v", other)
		}
	}
}
