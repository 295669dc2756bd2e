package planned

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

var (
	web     = targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID}
	isSmall = plans.Choice{Plan: "small", By: "a test"}
)

const firstPlans = "plans: {small: {write: 1MB/s, write-iops: 100, on: [{path: '254:16', write: 2MB/s}]}}\nassign: [{docker: web, plan: small}]\n"

func (w *world) groupOf(t *testing.T, id string) cgroupfs.Group {
	t.Helper()
	return hosttest.Group(t, w.host, "/docker/"+id)
}

// begun counts the records of births that somebody has begun, or left.
func (w *world) begun(t *testing.T) int {
	t.Helper()
	all, err := state.All[record](w.host.State, birthKind)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A newborn group has its rules at once, on what the plan names and on the disks of the host. The look
// after that still has everything else to do, once.
func TestPutFirst(t *testing.T) {
	lab.Unit(t)
	for _, version := range []string{"v1", "v2"} {
		w := newWorld(t, version)
		if version == "v1" {
			if err := os.WriteFile(w.groupOf(t, webID).File("blkio.throttle.io_service_bytes"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m := w.manager(t, firstPlans)
		rules := rulesOf(t, m)
		done, err := m.PutFirst(web, isSmall, w.groupOf(t, webID), rules)
		if err != nil || !done {
			t.Fatalf("%s: %v, %v", version, done, err)
		}
		if got := w.limitOf(t, webID, vdb); got != "write 2 MB/s, write 100 ops/s" {
			t.Errorf("%s: %s", version, got)
		}
		if names := w.onRecord(t); !slices.Equal(names, []string{"docker%3A3f2a"}) || w.begun(t) != 0 {
			t.Errorf("%s: on record %v, begun %d", version, names, w.begun(t))
		}
		if version == "v1" { // as the kernel does, which the stand-in does not
			if err := os.WriteFile(w.groupOf(t, webID).File("blkio.throttle.io_service_bytes"), []byte("254:16 Read 0\nTotal 0\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if done, err := m.PutFirst(web, isSmall, w.groupOf(t, webID), rules); done || err != nil {
			t.Errorf("%s: a group that has rules: %v, %v", version, done, err)
		}

		found, err := m.OfKind(t.Context(), "docker", []string{webID})
		if err != nil || len(found) != 1 || found[0].State != Differs || !found[0].Begun {
			t.Fatalf("%s: %+v, %v", version, found, err)
		}
		w.Writes = nil
		if err := m.Put(t.Context(), &found[0]); err != nil || len(w.Writes) != 0 {
			t.Fatalf("%s: %v, %v: the rules are in force", version, w.Writes, err)
		}
		if found, err = m.OfKind(t.Context(), "docker", []string{webID}); err != nil || len(found) != 1 || found[0].State != InForce {
			t.Errorf("%s: %+v, %v", version, found, err)
		}

		// The plan goes, and what was set goes with it.
		if got := w.apply(t, "plans: {other: {read: 1MB/s}}\n"); !strings.HasPrefix(got, "docker:web none changed") {
			t.Errorf("%s: %s", version, got)
		}
		if got := w.limitOf(t, webID, vdb); got != "no rate named" {
			t.Errorf("%s: %s is left", version, got)
		}
	}
}

// A group gets its first rules between a look at its target and what is done after that look: the rule that
// the target is not to have goes, and nothing is left when the plan goes.
func TestFirstRulesBehindALook(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, "plans: {small: {on: [{path: '254:16', write: 2MB/s}]}}\nassign: [{docker: web, plan: small}]\n")
	found, err := m.OfKind(t.Context(), "docker", []string{webID})
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	rules, err := w.manager(t, firstPlans).Ahead(t.Context(), "small")
	if err != nil || len(rules) != 2 {
		t.Fatalf("%v, %v", rules, err)
	}
	if done, err := m.PutFirst(web, isSmall, w.groupOf(t, webID), rules); err != nil || !done {
		t.Fatalf("%v, %v", done, err)
	}
	if err := m.Put(t.Context(), &found[0]); err != nil {
		t.Fatal(err)
	}
	if a, b := w.limitOf(t, webID, vda), w.limitOf(t, webID, vdb); a != "no rate named" || b != "write 2 MB/s" {
		t.Errorf("%s; %s", a, b)
	}
	if found, err = m.OfKind(t.Context(), "docker", []string{webID}); err != nil || len(found) != 1 || found[0].State != InForce {
		t.Errorf("%+v, %v", found, err)
	}
}

// The record of the first rules outlives a Put that found the target before, and fails.
func TestFirstRulesStayOnRecord(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	found, err := m.OfKind(t.Context(), "docker", []string{webID})
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	rules := rulesOf(t, m)
	if done, err := m.PutFirst(web, isSmall, w.groupOf(t, webID), rules); err != nil || !done {
		t.Fatalf("%v, %v", done, err)
	}
	w.stopped = true
	group := w.groupOf(t, webID).Dir()
	if err := os.Rename(group, group+".ended"); err != nil {
		t.Fatal(err)
	}
	if err := m.Put(t.Context(), &found[0]); err == nil {
		t.Error("a stopped container is limited")
	}
	w.stopped = false
	if err := os.Rename(group+".ended", group); err != nil {
		t.Fatal(err)
	}
	if got := w.apply(t, "plans: {other: {read: 1MB/s}}\n"); !strings.HasPrefix(got, "docker:web none changed") {
		t.Errorf("%q", got)
	}
	if got := w.limitOf(t, webID, vdb); got != "no rate named" {
		t.Errorf("%s is left", got)
	}
}

// rulesOf are the rules that a newborn group of the plan small gets.
func rulesOf(t *testing.T, m Manager) []hold.Change {
	t.Helper()
	rules, err := m.Ahead(t.Context(), "small")
	if err != nil || len(rules) == 0 {
		t.Fatalf("%v, %v", rules, err)
	}
	return rules
}

// A group of the target's name that another user has made gets nothing, and keeps nobody from looking
// at the target's own.
func TestPutFirstIsForGroupsOfRoot(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	rules := rulesOf(t, m)
	g := w.groupOf(t, webID)
	if err := os.Chown(g.Dir(), 4711, -1); errors.Is(err, os.ErrPermission) {
		t.Skip("only root can give a directory to another user, as the test needs it")
	} else if err != nil {
		t.Fatal(err)
	}
	if done, err := m.PutFirst(web, isSmall, g, rules); done || err != nil || len(w.Writes) != 0 || len(w.onRecord(t)) != 0 {
		t.Errorf("%v, %v, %v", done, err, w.Writes)
	}
}

// Half of a newborn group's rules are written, and weir is killed: what is in force is on record for
// the next weir, and goes with the plan.
func TestABirthThatWasCutShort(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v1")
	m := w.manager(t, firstPlans)
	rules := rulesOf(t, m)
	next := &record{Target: keyOf(web), Name: web.String(), Host: w.host.Socket("docker"), Plan: "small", Group: new(uint64)}
	for _, r := range rules {
		next.Limits = append(next.Limits, deviceRule{r.Device, r.Limit})
	}
	begun, err := w.host.State.New(birthKind, next)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.groupOf(t, webID).SetRule(rules[0].Device, rules[0].Limit); err != nil {
		t.Fatal(err)
	}
	if err := m.sweepFirst(); err != nil || w.begun(t) != 1 || len(w.onRecord(t)) != 0 {
		t.Fatalf("%v: the birth of a weir that lives is swept", err)
	}
	if err := begun.Leave(); err != nil { // as the kernel does when it ends
		t.Fatal(err)
	}
	if got := w.apply(t, "plans: {other: {read: 1MB/s}}\n"); !strings.HasPrefix(got, "docker:web none changed") {
		t.Error(got)
	}
	for _, dev := range []blkdev.Number{vda, vdb} {
		if got := w.limitOf(t, webID, dev); got != "no rate named" {
			t.Errorf("%v: %s is left", dev, got)
		}
	}
	if w.begun(t) != 0 || len(w.onRecord(t)) != 0 {
		t.Errorf("begun %d, on record %v", w.begun(t), w.onRecord(t))
	}
}

// A record from before a boot may name the number that a newborn group has by now, and one of an older weir
// names none: the group has its rules alone.
func TestARecordFromBefore(t *testing.T) {
	lab.Unit(t)
	for _, older := range []bool{false, true} {
		w := newWorld(t, "v2")
		m := w.manager(t, firstPlans)
		w.apply(t, firstPlans)
		g := w.groupOf(t, webID)
		if err := os.WriteFile(g.File("io.max"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if older {
			r, err := recordOf(w.host.Root, keyOf(web))
			if err != nil {
				t.Fatal(err)
			}
			r.Group = nil
			if err := r.save(w.host.Root); err != nil {
				t.Fatal(err)
			}
		}
		rules := rulesOf(t, m)
		if done, err := m.PutFirst(web, isSmall, g, rules); err != nil || !done {
			t.Fatalf("%v, %v", done, err)
		}
		found, err := m.OfKind(t.Context(), "docker", []string{webID})
		if err != nil || len(found) != 1 || !found[0].Begun {
			t.Errorf("older: %v: %+v, %v", older, found, err)
		}
	}
}

// A device has gone since it was looked up. The rules of the others are in force, and on record.
func TestPutFirstWithoutADevice(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	rules, err := m.Ahead(t.Context(), "small")
	if err != nil || len(rules) != 2 {
		t.Fatalf("%v, %v", rules, err)
	}
	w.Refuse = func(_, line string) error {
		if strings.HasPrefix(line, rules[0].Device.String()+" ") {
			return unix.ENODEV
		}
		return nil
	}
	if done, err := m.PutFirst(web, isSmall, w.groupOf(t, webID), rules); done || err != nil || w.begun(t) != 0 || len(w.onRecord(t)) != 1 {
		t.Errorf("%v, %v", done, err)
	}
	if got := w.limitOf(t, webID, rules[1].Device); got == "no rate named" {
		t.Error("the other device has no rule")
	}
}

// A group that cannot have rules yet waits for Put, and is no trouble.
func TestPutFirstWithoutTheController(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	rules := rulesOf(t, m)
	g := w.groupOf(t, webID)
	if err := errors.Join(os.Remove(g.File("io.max")), os.WriteFile(g.Parent().File("cgroup.subtree_control"), []byte("memory\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if done, err := m.PutFirst(web, isSmall, g, rules); done || err != nil || w.begun(t) != 0 || len(w.onRecord(t)) != 0 {
		t.Errorf("%v, %v", done, err)
	}
}

// A record of an earlier group of the target stays as it is, and says that the new one is not done.
func TestARestartIsBegun(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	if got := w.apply(t, firstPlans); !strings.HasPrefix(got, "docker:web small changed") {
		t.Fatal(got)
	}
	dir := w.groupOf(t, webID).Dir()
	if err := os.CopyFS(dir+".new", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Rename(dir+".new", dir)); err != nil { // another inode
		t.Fatal(err)
	}
	found, err := m.OfKind(t.Context(), "docker", []string{webID})
	if err != nil || len(found) != 1 || !found[0].Begun {
		t.Errorf("%+v, %v", found, err)
	}
}

// A birth is put on record late, for a disk that did not answer: by then its target has had another plan, whose
// record stays.
func TestABirthIsRecordedLate(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	b, err := m.BeginFirst(web, isSmall, w.groupOf(t, webID), rulesOf(t, m))
	if err != nil || b == nil || len(w.onRecord(t)) != 0 || w.begun(t) != 1 {
		t.Fatalf("%v, %v: on record %q, begun %d", b, err, w.onRecord(t), w.begun(t))
	}
	w.apply(t, strings.Replace(firstPlans, "1MB/s", "3MB/s", 1))
	before, err := recordOf(w.host.Root, keyOf(web))
	if err != nil || before == nil || before.Plan == "" {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := b.Record(); err != nil || w.begun(t) != 0 {
		t.Errorf("%v, begun %d", err, w.begun(t))
	}
	if after, err := recordOf(w.host.Root, keyOf(web)); err != nil || !before.is(after) {
		t.Errorf("%+v, want %+v (%v)", after, before, err)
	}
}
