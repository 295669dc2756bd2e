package agent

import (
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/host"
)

// Who asks is told why cgroups cannot be watched. Comparisons do not become rarer then.
func TestSaysWhyItWatchesNothing(t *testing.T) {
	d := prepare(t, small)
	d.tree.Options.Open = func() (*host.Host, error) { return nil, errors.New("too many open files") }
	d.start()
	if s := d.Status(); !has("small", reconcile.InForce)(s) || s.TreeError != "too many open files" || len(s.Hierarchies) != 0 || !d.loop.Silent() {
		t.Errorf("%+v, silent %v", s, d.loop.Silent())
	}
	d = start(t, small)
	d.until("followed", func(s Status) bool { return len(s.Hierarchies) == 1 && s.TreeError == "" })
	if d.loop.Silent() {
		t.Error("it is silent")
	}
}
