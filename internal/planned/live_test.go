package planned

import (
	"strings"
	"testing"
)

// A live knows one pod.
type live struct {
	all  map[string]string
	plan string
	is   bool
}

func (l *live) Of(uid, namespace string) (map[string]string, string, bool) {
	if uid != podUID || namespace != "prod" {
		return nil, "", false
	}
	return l.all, l.plan, l.is
}

// What an API server says of a pod counts, for it and for its containers, in place of what the runtime
// says; and the plan of its namespace does, if it may.
func TestLive(t *testing.T) {
	w := newPods(t, map[string]string{"weir.io/write": "1Mi"})
	l := &live{}
	const plan = "plans: {small: {read: 3MiB/s}, big: {read: 9MiB/s}}\nallow-labels: [small]\n"
	apply := func() {
		t.Helper()
		m := w.manager(t, plan)
		m.Config.Annotated, m.Live = true, l
		if _, err := m.Apply(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	pod := func(want string) {
		t.Helper()
		apply()
		if got := w.inForce(t, ""); strings.Contains(got, "254:16 ") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	pod("wbps=1048576")
	l.is, l.all = true, map[string]string{"weir.io/write": "2Mi", "weir.io/write.main": "1500k"}
	pod("wbps=2097152")
	if got := w.inForce(t, dbID); !strings.Contains(got, "wbps=1500000") {
		t.Errorf("of its container: %q", got)
	}
	l.all = map[string]string{}
	pod("")
	l.plan = "small"
	pod("rbps=3145728")
	l.plan = "big"
	pod("")
	l.plan, l.all = "small", map[string]string{"weir.io/write": "2Mi"}
	pod("rbps=3145728 wbps=2097152")
	l.is, l.plan = false, ""
	pod("wbps=1048576")
}
