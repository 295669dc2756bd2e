package planned

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// A container whose name another one has by the time of the deed: the other one gets no limit.
func TestPutIsForTheContainerThatWasLookedAt(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, twoPlans+"assign: [{docker: web, plan: small}]\n")
	found, err := m.OfKind(t.Context(), "docker", nil)
	if err != nil || len(found) != 2 || found[0].State != Differs || found[1].Choice.Refused == "" {
		t.Fatalf("%+v, %v", found, err)
	}
	w.removed, w.renamed, w.Writes = true, true, nil
	group := w.groupOf(t, webID).Dir() // is another one now
	if err := errors.Join(os.Rename(group, group+".ended"), os.CopyFS(group, os.DirFS(group+".ended"))); err != nil {
		t.Fatal(err)
	}
	var none *targets.NotFound
	if err := m.Put(t.Context(), &found[0]); !errors.As(err, &none) {
		t.Errorf("%v: it is gone", err)
	}
	if len(w.Writes) != 0 || w.limitOf(t, dbID, vda) != w.limitOf(t, webID, vda) || len(w.onRecord(t)) != 0 {
		t.Errorf("%v, on record %v", w.Writes, w.onRecord(t))
	}
}

// While a kind is changed, and its daemon hangs, other kinds go on. Who applies all plans waits for it.
func TestAKindDelaysNoOther(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, twoPlans)
	t.Setenv("XDG_RUNTIME_DIR", "")
	own := t.TempDir()
	if err := os.Mkdir(own+"/tmp", 0o700); err != nil { // where a user's locks are
		t.Fatal(err)
	}
	m.Host.State = state.At(own)
	m.Host.Root = "/" // it is the machine's own: others wait for what one does
	tries := func(kind string) error {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errLocked)
		defer cancel()
		if kind != "" {
			return m.Put(ctx, &Target{key: kind + ":x", State: InForce})
		}
		_, err := m.Apply(ctx, false)
		return err
	}
	unlock, err := lock(t.Context(), m.Host, "docker")
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]error{"docker": errLocked, "": errLocked, "unit": nil, "podman": nil} {
		if err := tries(kind); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", kind, err, want)
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errLocked)
	defer cancel()
	if err := m.Note(ctx, m.NoteOf(Target{key: "docker:x"})); !errors.Is(err, errLocked) { // it would write over what is just being written
		t.Errorf("noted meanwhile: %v", err)
	}
	heir := Target{key: "unit:x", State: InForce, heir: &Target{key: "docker:x"}}
	if err := m.Put(ctx, &heir); !errors.Is(err, errLocked) {
		t.Errorf("handed over meanwhile: %v", err)
	}
	unlock()
	if err := tries("docker"); err != nil {
		t.Error(err)
	}
	unlock, err = lock(t.Context(), m.Host, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		if err := tries(kind); !errors.Is(err, errLocked) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	unlock()
}

var errLocked = errors.New("locked")

// A record names the group that the limits were set on, also if it is written when the host where the group was found is
// closed.
func TestANoteOutlivesItsHost(t *testing.T) {
	lab.Unit(t)
	w := newWorld(t, "v2")
	m := w.manager(t, firstPlans)
	id, err := w.groupOf(t, webID).ID()
	if err != nil {
		t.Fatal(err)
	}
	its, err := host.Open(host.Options{Root: w.host.Root})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hosttest.StandIn(its); err != nil {
		t.Fatal(err)
	}
	io, err := its.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group("/docker/" + webID)
	if err != nil {
		t.Fatal(err)
	}
	before := m.on(its)
	found := before.Given(t.Context(), web, targets.Target{Kind: "docker", Name: "web", Group: g, PID: 4900})
	if err := before.PutGiven(t.Context(), &found); err != nil || found.State != Changed {
		t.Fatalf("%s, %v", found.State, err)
	}
	n := before.NoteOf(found)
	if err := its.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Note(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if r, err := recordOf(w.host.Root, found.key); err != nil || r == nil || r.Group == nil || *r.Group != id {
		t.Errorf("on record is %+v, %v; want the group %d", r, err, id)
	}
}
