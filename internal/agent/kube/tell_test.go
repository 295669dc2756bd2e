package kube

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/lab"
)

// A changed annotation with a plan that the pod may not choose changes nothing, until the plans allow it.
func TestAPlanThatIsNotAllowed(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	pod := func(plan, version string) string {
		return objectOf("prod", "a", "ua", version, map[string]string{"weir.io/plan": plan})
	}
	f.forbidden = "huge"
	f.lists[pods] = []string{pod("small", "3")}
	c := f.run()
	plan := func() string { all, _, _ := c.Of("ua", "prod"); return all["weir.io/plan"] }
	f.await("the pod", func() bool { return plan() == "small" })
	f.tell(pods, eventOf("MODIFIED", pod("huge", "12")))
	f.await("the event", func() bool { return f.has("AnnotationsWrong") == 1 && f.has("the plan huge is not allowed") >= 1 })
	if plan() != "small" {
		t.Errorf("it has the plan %q", plan())
	}
	f.set(func() { f.forbidden = ""; f.changed = nil })
	f.await("the plan that is allowed now", func() bool { return plan() == "huge" })
	f.await("a look", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.changed) == 2 && f.changed[0] == "pod:ua" })
}

// Until weird has looked at all pods it takes back nothing that the one before it has told.
func TestToldBeforeTheLook(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.looks = true
	f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", map[string]string{"weir.io/status": "in force, plan small"})}
	c := f.run()
	f.await("the pod", func() bool { return c.write("ua") == "" })
	time.Sleep(20 * c.every) // a promise
	if n := f.has("PATCH "); n != 0 {
		t.Errorf("%q", f.sent)
	}
	f.set(func() { f.looks = false })
	f.await("that there is nothing to say", func() bool { return f.has("PATCH ") == 1 })
}

// A pod is told its own state, and not that of an earlier one of its name which has not ended yet.
func TestTwoPodsOfOneName(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.lists[pods] = []string{objectOf("prod", "web", "u-new", "3", writes("1Mi"))}
	f.states = []agent.PodState{{Name: "prod/web", UID: "u-new", Finding: "its own"}, {Name: "prod/web", UID: "u-old", Finding: "the earlier one's"}}
	f.run()
	f.await("its state", func() bool { return f.has("POST ") == 1 })
	if f.has("not in force: its own") == 0 || f.has("the earlier one's") != 0 {
		t.Errorf("%q", f.sent)
	}
}

// Of a pod that names a plan which is not allowed all is read: the plans refuse it.
func TestAPlanThatWasNeverAllowed(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.forbidden = "huge"
	f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", map[string]string{"weir.io/plan": "huge"})}
	c := f.run()
	f.await("the event", func() bool { return f.has("AnnotationsWrong") == 1 })
	f.await("the namespaces", func() bool { own, _ := c.Read("ua"); return own })
	if all, _, is := c.Of("ua", "prod"); !is || all["weir.io/plan"] != "huge" {
		t.Errorf("%v, %v", all, is)
	}
}

// A namespace that refuses news keeps no other from them. Several say that the account may tell nothing.
func TestRefusals(t *testing.T) {
	lab.Unit(t)
	now := time.Now()
	for _, by := range []what{byAnnotation, byEvent} {
		r := refusals{}
		r.note(by, "a", &statusError{status: http.StatusForbidden}, now)
		r.note(by, "b", errors.New("no answer"), now)
		for namespace, want := range map[string]bool{"a": true, "b": false} {
			if got := r.has(by, namespace, now); got != want {
				t.Errorf("%s: %v", namespace, got)
			}
		}
		if other := map[what]what{byAnnotation: byEvent, byEvent: byAnnotation}[by]; r.has(other, "a", now) {
			t.Errorf("%s is refused as well", other)
		}
		r.note(by, "b", &statusError{status: http.StatusForbidden}, now)
		if r.has(by, "z", now) {
			t.Error("two namespaces are all")
		}
		r.note(by, "c", &statusError{status: http.StatusForbidden}, now)
		if later := now.Add(refusedTime); !r.has(by, "z", now) || r.has(by, "z", later) || r.has(by, "a", later) {
			t.Error("three namespaces, or for how long")
		}
	}
	r := refusals{}
	if r.note(byEvent, "a", &statusError{status: http.StatusUnauthorized}, now); !r.has(byEvent, "z", now) {
		t.Error("a token that does not count")
	}
}

// A pod of a namespace that refuses is not told of, and one of another is.
func TestOneNamespaceRefuses(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.refusedPath = "/api/v1/namespaces/a/events"
	for _, namespace := range []string{"a", "b"} {
		f.lists[pods] = append(f.lists[pods], objectOf(namespace, "web", "u-"+namespace, "3", writes("1Mi")))
		f.states = append(f.states, agent.PodState{Name: namespace + "/web", Finding: "no such volume"})
	}
	f.run()
	f.await("the other's event", func() bool { return f.has("POST /api/v1/namespaces/b/events") == 1 })
}
