package planned

import (
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/target"
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
	var none *target.NotFound
	if err := m.Put(t.Context(), &found[0]); !errors.As(err, &none) {
		t.Errorf("%v: it is gone", err)
	}
	if len(w.Writes) != 0 || w.limitOf(t, dbID, vda) != w.limitOf(t, webID, vda) || len(w.onRecord(t)) != 0 {
		t.Errorf("%v, on record %v", w.Writes, w.onRecord(t))
	}
}
