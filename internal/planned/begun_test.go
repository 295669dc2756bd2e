package planned

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// given is the container web as its owner describes it, compared with its plan.
func (w *world) given(t *testing.T, m Manager) Target {
	t.Helper()
	its, err := w.host.Target(t.Context(), "docker:"+webID)
	if err != nil {
		t.Fatal(err)
	}
	return m.Given(t.Context(), web, its)
}

// The rules are in force when BeginGiven returns, whether the group had some before or not. The next look has everything
// else to do, once. A weird that is killed before the record is on the disk leaves that to the next one.
func TestBeginGiven(t *testing.T) {
	lab.Unit(t)
	for _, version := range []string{"v1", "v2"} {
		for _, before := range []string{"", "254:16 rbps=7 wbps=9 riops=max wiops=max\n"} {
			for _, killed := range []bool{false, true} {
				if before != "" && version == "v1" {
					continue // its files are others
				}
				w := newWorld(t, version)
				m := w.manager(t, firstPlans)
				if before != "" {
					if err := os.WriteFile(w.groupOf(t, webID).File("io.max"), []byte(before), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				found := w.given(t, m)
				b, done, err := m.BeginGiven(t.Context(), &found)
				if err != nil || !done || b == nil {
					t.Fatalf("%s: %v, %v, %v", version, b, done, err)
				}
				if a, b := w.limitOf(t, webID, vda), w.limitOf(t, webID, vdb); a != "write 1 MB/s, write 100 ops/s" || b != "write 2 MB/s, write 100 ops/s" {
					t.Errorf("%s: %s; %s", version, a, b)
				}
				if w.begun(t) != 1 || len(w.onRecord(t)) != 0 {
					t.Errorf("%s: begun %d, on record %v", version, w.begun(t), w.onRecord(t))
				}
				if killed {
					err = errors.Join(b.Leave(), m.sweepFirst()) // as the kernel does, and the next weird
				} else {
					err = b.Record()
				}
				if err != nil || w.begun(t) != 0 || len(w.onRecord(t)) != 1 {
					t.Errorf("%s: %v; begun %d, on record %v", version, err, w.begun(t), w.onRecord(t))
				}
				all, err := m.OfKind(t.Context(), "docker", []string{webID})
				if err != nil || len(all) != 1 || !all[0].Begun {
					t.Fatalf("%s: %+v, %v", version, all, err)
				}
				if err := m.Put(t.Context(), &all[0]); err != nil {
					t.Fatal(err)
				}
				if all, err = m.OfKind(t.Context(), "docker", []string{webID}); err != nil || len(all) != 1 || all[0].State != InForce {
					t.Errorf("%s: %+v, %v", version, all, err)
				}
				if got := w.apply(t, "plans: {other: {read: 1MB/s}}\n"); !strings.HasPrefix(got, "docker:web none changed") || w.limitOf(t, webID, vda) != "no rate named" {
					t.Errorf("%s: %s", version, got)
				}
			}
		}
	}
}

// What the kernel refuses leaves the group as it was, with nothing on record, and PutGiven says what is wrong.
func TestBeginGivenIsRefused(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	const before = "254:0 rbps=7 wbps=9 riops=max wiops=max\n"
	if err := os.WriteFile(w.groupOf(t, webID).File("io.max"), []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	found := w.given(t, m)
	w.Refuse = func(_, line string) error {
		if strings.HasPrefix(line, "254:16 ") {
			return unix.ENODEV
		}
		return nil
	}
	if b, done, err := m.BeginGiven(t.Context(), &found); b != nil || done || err != nil {
		t.Errorf("%v, %v, %v", b, done, err)
	}
	if text, err := os.ReadFile(w.groupOf(t, webID).File("io.max")); err != nil || string(text) != before || w.begun(t) != 0 || len(w.onRecord(t)) != 0 {
		t.Errorf("%q, %v; begun %d, on record %v", text, err, w.begun(t), w.onRecord(t))
	}
	if err := m.PutGiven(t.Context(), &found); !errors.Is(err, unix.ENODEV) {
		t.Error(err)
	}
}

// Another weir works on the group: its rules are waited for, and not the end of its work. If it sets others, the rules
// are written when it is done.
func TestBeginGivenBesideAnother(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	g := w.groupOf(t, webID)
	rules := rulesOf(t, m)

	found := w.given(t, m)
	other, free, err := w.host.Holder().TryLock(g)
	if err != nil || !free {
		t.Fatal(free, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if b, done, err := m.BeginGiven(short, &found); b != nil || done || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without its rules: %v, %v, %v", b, done, err)
	}
	for _, r := range rules {
		if err := g.SetRule(r.Device, r.Limit); err != nil {
			t.Fatal(err)
		}
	}
	if b, done, err := m.BeginGiven(t.Context(), &found); b != nil || !done || err != nil {
		t.Errorf("with its rules: %v, %v, %v", b, done, err)
	}
	if err := os.WriteFile(g.File("io.max"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(5*time.Millisecond, other.Unlock)
	b, done, err := m.BeginGiven(t.Context(), &found)
	if b == nil || !done || err != nil {
		t.Fatalf("when it is done: %v, %v, %v", b, done, err)
	}
	if got := w.limitOf(t, webID, vda); got != "write 1 MB/s, write 100 ops/s" {
		t.Error(got)
	}
	if err := b.Record(); err != nil {
		t.Fatal(err)
	}
}

// What is not for the kernel's rules alone is left to PutGiven, and nothing is written.
func TestNotBegun(t *testing.T) {
	lab.Unit(t)
	for name, change := range map[string]func(w *world, found *Target) error{
		"the pacer has to hold it first": func(_ *world, found *Target) error { found.Unheld = true; return nil },
		"it has not the controller": func(w *world, found *Target) error {
			return errors.Join(os.Remove(found.group.File("io.max")), os.WriteFile(found.group.Parent().File("cgroup.subtree_control"), []byte("memory\n"), 0o600))
		},
	} {
		w := newWorld(t, "v2")
		m := w.manager(t, firstPlans)
		found := w.given(t, m)
		if err := change(w, &found); err != nil {
			t.Fatal(err)
		}
		if b, done, err := m.BeginGiven(t.Context(), &found); b != nil || done || err != nil || len(w.Writes) != 0 || w.begun(t) != 0 {
			t.Errorf("%s: %v, %v, %v; %v", name, b, done, err, w.Writes)
		}
	}
	w := newWorld(t, "v2") // in force already
	m := w.manager(t, firstPlans)
	w.apply(t, firstPlans)
	found := w.given(t, m)
	if b, done, err := m.BeginGiven(t.Context(), &found); b != nil || !done || err != nil || slices.Contains(w.onRecord(t), "") {
		t.Errorf("%v, %v, %v", b, done, err)
	}
}
