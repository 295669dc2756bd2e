package planned

import (
	"net/http"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/daemon/socket/sockettest"
	"github.com/weir-io/weir/lab"
)

// A container of another daemon than the usual one is asked of its own. One answer that takes long is the last that is asked
// for in a look.
func TestWhereATargetIs(t *testing.T) {
	lab.Unit(t)
	w := newScope(t)
	own, none := w.host.Socket("docker"), sockettest.Serve(t, func(out http.ResponseWriter, _ *http.Request) { http.NotFound(out, nil) })
	m := w.scopes(t, scopePlans)
	m.Host = w.host.With("docker", "unix://"+none)
	asked := 0
	hangs := sockettest.Serve(t, func(http.ResponseWriter, *http.Request) { asked++; time.Sleep(slowLeast + slowLeast/2) })
	for name, c := range map[string]struct {
		host  string
		there bool
		asked int
	}{"its own": {own, true, 0}, "the usual one": {"unix://" + none, false, 0}, "one that hangs": {"unix://" + hangs, false, 1}} {
		asked = 0
		h := newHeirs(m)
		for _, id := range []string{webID, dbID} {
			at := h.pathOf(t.Context(), &record{Target: "docker:" + id, Name: id, Host: c.host})
			if id == webID && (at.err == nil && at.path == "/system.slice/"+scopeOfWeb) != c.there {
				t.Errorf("%s: %+v", name, at)
			}
		}
		if asked != c.asked {
			t.Errorf("%s was asked %d times, want %d", name, asked, c.asked)
		}
	}
}
