package kube

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/lab"
)

const (
	pods   = "/api/v1/pods"
	spaces = "/api/v1/namespaces"
)

func writes(n string) map[string]string {
	return map[string]string{"weir.io/write": n, "other.io/x": "y"}
}

func (c *Cluster) write(uid string) string {
	all, _, is := c.Of(uid, "prod")
	if !is {
		return "unknown"
	}
	return all["weir.io/write"]
}

// What is there, and each change of it, is known; so are the plans of namespaces.
func TestFollows(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", writes("1Mi")), objectOf("prod", "b", "ub", "4", nil)}
	f.lists[spaces] = []string{objectOf("", "prod", "un", "2", map[string]string{"weir.io/plan": "small"}) + "," + objectOf("", "odd", "uo", "2", map[string]string{"weir.io/plan": "../x"})}
	c := f.run()
	f.await("the second page", func() bool { return c.write("ub") == "" })
	if c.write("ua") != "1Mi" {
		t.Errorf("%q", c.write("ua"))
	}
	if all, _, _ := c.Of("ua", "prod"); len(all) != 1 {
		t.Errorf("others' annotations are kept: %v", all)
	}
	f.await("the namespaces", func() bool { _, plan, _ := c.Of("ua", "prod"); return plan == "small" })
	if _, plan, is := c.Of("ua", "odd"); plan != "" || is {
		t.Errorf("of a pod in another namespace: %q, %t", plan, is)
	}
	began := time.Now()
	f.tell(pods, eventOf("MODIFIED", objectOf("prod", "a", "ua", "11", writes("2Mi"))))
	f.await("the change", func() bool { return c.write("ua") == "2Mi" })
	if took := time.Since(began); took > time.Second {
		t.Errorf("a change takes %v", took)
	}
	f.tell(pods, eventOf("BOOKMARK", objectOf("", "", "", "15", nil)))
	f.tell(pods, "") // the server ends the watch
	f.tell(pods, eventOf("DELETED", objectOf("prod", "b", "ub", "16", nil)))
	f.await("the end of a pod", func() bool { return c.write("ub") == "unknown" })
	f.tell(spaces, eventOf("MODIFIED", objectOf("", "prod", "un", "17", nil)))
	f.await("the end of the namespace's plan", func() bool { _, plan, _ := c.Of("ua", "prod"); return plan == "" })

	f.mu.Lock()
	defer f.mu.Unlock()
	var resumed bool
	for _, r := range f.asked {
		q := r.URL.Query()
		if r.URL.Path == pods && q.Get("fieldSelector") != "spec.nodeName=node-1" || !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") || r.Header.Get("Authorization") != "Bearer first" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		resumed = resumed || r.URL.Path == pods && q.Get("resourceVersion") == "15"
	}
	if !resumed {
		t.Error("no watch goes on from the bookmark")
	}
	if text := strings.Join(f.changed, " "); !strings.Contains(text, "pod:ua") || !strings.Contains(text, "containerd:") || !strings.HasSuffix(text, "pod:") {
		t.Errorf("told of %s", text)
	}
}

// Wrong annotations are told of, once, and those from before count.
func TestWrongAnnotations(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", writes("1Mi"))}
	f.states = []agent.PodState{{Name: "prod/a", Plan: "annotations"}}
	c := f.run()
	f.await("the event of limits in force", func() bool { return f.has(`"reason":"LimitsInForce"`) == 1 })
	f.set(func() { c.mu.Lock(); c.pods["ua"].when = time.Unix(1, 0); c.mu.Unlock() }) // as if that were long ago
	f.tell(pods, eventOf("MODIFIED", objectOf("prod", "a", "ua", "11", writes("10MB/s"))))
	f.await("the event", func() bool { return f.has(`"reason":"AnnotationsWrong"`) == 1 })
	f.await("the annotation", func() bool {
		return f.has(`PATCH /api/v1/namespaces/prod/pods/a/status {"metadata":{"annotations":{"weir.io/status":"wrong: `) == 1
	})
	if c.write("ua") != "1Mi" || f.has(`10MB/s is no Kubernetes quantity`) != 2 || f.has(`"uid":"ua"`) != 4 || f.has(`"type":"Warning"`) != 1 {
		t.Errorf("%q, %q", c.write("ua"), f.sent)
	}
	f.tell(pods, eventOf("MODIFIED", objectOf("prod", "a", "ua", "12", writes("3Mi"))))
	f.await("the right ones", func() bool { return c.write("ua") == "3Mi" })
	time.Sleep(20 * c.every) // a promise: within tellLeast nothing more is told
	if n := f.has("POST "); n != 2 {
		t.Errorf("%d events: %q", n, f.sent)
	}
}

// Of a pod that is on its way out nothing is told: its processes go before it does.
func TestAPodThatGoes(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	going := strings.Replace(objectOf("prod", "a", "ua", "3", writes("1Mi")), `"metadata":{`, `"metadata":{"deletionTimestamp":"2026-11-27T15:00:00Z",`, 1)
	f.lists[pods] = []string{going, objectOf("prod", "b", "ub", "4", writes("1Mi"))}
	f.states = []agent.PodState{{Name: "prod/a", Plan: "annotations", Finding: "its first process is gone"}, {Name: "prod/b", Plan: "annotations", Finding: "its disk is gone"}}
	c := f.run()
	f.await("the event of the other pod", func() bool { return f.has(`its disk is gone`) > 0 })
	time.Sleep(5 * c.every)
	if n := f.has("its first process is gone"); n != 0 {
		t.Errorf("it was told of %d times: %q", n, f.sent)
	}
}

// A pod that was never right has what the runtime says.
func TestNeverRight(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", writes("x"))}
	c := f.run()
	f.await("the event", func() bool { return f.has("AnnotationsWrong") == 1 })
	if got := c.write("ua"); got != "unknown" {
		t.Error(got)
	}
}

// The API server's answers may be anything. What is known stays, and comes again once they are right.
func TestHostile(t *testing.T) {
	lab.Unit(t)
	answer := func(text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	refuse := func(status int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"message":"no"}`, status) }
	}
	half := eventOf("MODIFIED", objectOf("prod", "a", "ua", "11", writes("9Mi")))
	for name, c := range map[string]struct {
		list, watch func(http.ResponseWriter, *http.Request)
		says        string
		lists       bool // it lists again
	}{
		"410":            {nil, refuse(410), "", true},
		"410 in a watch": {nil, answer(eventOf("ERROR", `{"code":410,"message":"too old"}`)), "", true},
		"400":            {nil, refuse(400), "400 Bad Request: no", true}, // the version, say, after etcd's data were exchanged
		"500 in a watch": {nil, answer(eventOf("ERROR", `{"code":500,"message":"x\u001b[2J"}`)), `500 Internal Server Error: `, true},
		"half a line":    {nil, answer(half[:len(half)-10]), "", false},
		"no JSON":        {nil, answer("<html>\n"), "read the API server's watch", true},
		"no version":     {nil, answer(`{"type":"ADDED","object":{}}` + "\n"), "without a version", true},
		"another type":   {nil, answer(`{"type":"X","object":{}}` + "\n"), "an event of the type X", true},
		"a line without end": {nil, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "token too long", true},
		"a hang":            {nil, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "", false},
		"a hang in a watch": {nil, func(w http.ResponseWriter, r *http.Request) { w.(http.Flusher).Flush(); <-r.Context().Done() }, "does not end a watch", false},
		"403":               {refuse(403), nil, "403 Forbidden: no", true},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/api/v1/namespaces", http.StatusFound)
		}, nil, "302 Found", true},
		"a list of text":           {answer("[]"), nil, "read the API server's list", true},
		"a list without a version": {answer(`{"items":[]}`), nil, "has no version", true},
		"odd objects":              {answer(`{"metadata":{"resourceVersion":"1"},"items":[{},{"metadata":{"name":"` + strings.Repeat("x", 1000) + `","uid":"u"}},{"metadata":null}]}`), nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", writes("1Mi"))}
			f.list, f.watch = c.list, c.watch
			cluster := f.runFor(300 * time.Millisecond)
			asked := func(watch bool) (n int) {
				f.mu.Lock()
				defer f.mu.Unlock()
				for _, r := range f.asked {
					if r.URL.Path == pods && r.URL.Query().Has("watch") == watch {
						n++
					}
				}
				return n
			}
			if c.list == nil {
				f.await("what was listed", func() bool { return cluster.write("ua") == "1Mi" })
				f.await("watches", func() bool { return asked(true) >= 2 })
			}
			if c.says != "" {
				f.await(c.says, func() bool { return f.has(c.says) >= 1 })
			}
			if c.lists {
				f.await("a list again", func() bool { return asked(false) >= 2 })
			}
			if f.has("\x1b") != 0 || f.has("9Mi") != 0 || cluster.write("ua") == "9Mi" {
				t.Errorf("%s", f.log.String())
			}
			if n := f.has("about=" + pods); n > 2 {
				t.Errorf("it is said %d times:\n%s", n, f.log.String())
			}
			f.set(func() { f.list, f.watch = nil, nil })
			f.await("the pods", func() bool {
				f.mu.Lock()
				events := f.events[pods]
				f.mu.Unlock()
				select {
				case events <- eventOf("ADDED", objectOf("prod", "z", "uz", "20", writes("5Mi"))):
				default:
				}
				return cluster.write("uz") == "5Mi"
			})
			if n := asked(true) + asked(false); n > 100 {
				t.Errorf("it has asked %d times", n)
			}
		})
	}
}

// Many pods as large as Kubernetes takes them keep nobody from hearing of the others.
func TestLargePods(t *testing.T) {
	lab.Unit(t)
	const all = pageBytesMost/(14<<17) + 2
	padding := strings.Repeat("x", 14<<17)
	f := newFake(t)
	f.list = func(w http.ResponseWriter, r *http.Request) {
		limit, first, items := 0, 0, []string{}
		_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &first)
		for i := first; i < min(first+limit, all); i++ {
			items = append(items, objectOf("prod", fmt.Sprint("p", i), fmt.Sprint("u", i), "3", map[string]string{"weir.io/write": "1Mi", "padding": padding}))
		}
		more := ""
		if first+limit < all {
			more = fmt.Sprint(first + limit)
		}
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"10","continue":%q},"items":[%s]}`, more, strings.Join(items, ","))
	}
	c := f.run()
	f.await("the last pod", func() bool { return c.write(fmt.Sprint("u", all-1)) == "1Mi" })
}

// What is told and refused is said once, and not tried again at once; pods are still followed.
func TestRefused(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.refuse = http.StatusForbidden
	for i := range 12 {
		name := fmt.Sprint("p", i)
		f.lists[pods] = append(f.lists[pods], objectOf("prod", name, "u"+name, "3", writes("1Mi")))
		f.states = append(f.states, agent.PodState{Name: "prod/" + name, Finding: "no such volume"})
	}
	c := f.run()
	f.await("both refusals", func() bool { return f.has(`level=WARN`) == 2 })
	f.await("the last pod", func() bool { return c.write("up11") == "1Mi" })
	time.Sleep(20 * c.every) // a promise
	if f.has("PATCH ")+f.has("POST ") != 2 || f.has(`you may not\\x1b[2J`) != 2 {
		t.Errorf("%q\n%s", f.sent, f.log.String())
	}
}

// What the API server did not take is told again: its pods must not say "held" when they no longer are.
func TestToldAgain(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.lists[pods] = []string{objectOf("prod", "a", "ua", "3", map[string]string{"weir.io/write": "1Mi", "weir.io/status": "held (measured), plan small"})}
	f.states = []agent.PodState{{Name: "prod/a", Plan: "small", Held: true}}
	c := f.run()
	f.await("the pod", func() bool { return c.write("ua") == "1Mi" })
	time.Sleep(20 * c.every) // a promise: what another weird has told is not told again
	if n := f.has("PATCH ") + f.has("POST "); n != 0 {
		t.Errorf("%q", f.sent)
	}
	later := func() { f.set(func() { c.mu.Lock(); c.pods["ua"].when = time.Unix(1, 0); c.mu.Unlock() }) } // as if that were long ago
	f.set(func() { f.refuse = http.StatusInternalServerError; f.states[0].NotHeld = "it is above" })
	f.await("an attempt of each", func() bool { return f.has("PATCH ") == 1 && f.has("POST ") == 1 })
	f.set(func() { f.refuse = 0 })
	later()
	f.await("the second attempt of each", func() bool { return f.has("PATCH ") == 2 && f.has("POST ") == 2 })
	later()
	time.Sleep(20 * c.every) // a promise: what was taken is not told again
	if f.has("PATCH ") != 2 || f.has("POST ") != 2 {
		t.Errorf("%q", f.sent)
	}
}

// A server that ends each watch at once is not asked as fast as it answers.
func TestShortWatches(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.watch = func(http.ResponseWriter, *http.Request) {}
	f.run()
	time.Sleep(2 * time.Second) // what is counted is over a time
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.asked {
		if r.URL.Path == pods && r.URL.Query().Has("watch") {
			n++
		}
	}
	if n == 0 || n > 6 { // pauses of 0.1, 0.2, 0.4, 0.8 and 1.6 s at least
		t.Errorf("%d watches in 2 s", n)
	}
}

// The token is read anew each time: kubelet exchanges it.
func TestTokenIsReadAgain(t *testing.T) {
	lab.Unit(t)
	f := newFake(t)
	f.watch = func(http.ResponseWriter, *http.Request) {} // it ends at once
	f.run()
	with := func(token string) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.asked) > 0 && f.asked[len(f.asked)-1].Header.Get("Authorization") == "Bearer "+token
	}
	f.await("the first token", func() bool { return with("first") })
	if err := os.WriteFile(f.token, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.await("the second token", func() bool { return with("second") })
	if err := os.Remove(f.token); err != nil {
		t.Fatal(err)
	}
	f.await("that there is none", func() bool { return f.has("no token of the service account") >= 1 })
}

func TestInCluster(t *testing.T) {
	lab.Unit(t)
	if _, err := InCluster(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Error(err)
	}
	if _, err := NewClient("https://x", "t", []byte("none")); err == nil {
		t.Error("no authority is one")
	}
}

// What is told of a state.
func TestNewsOf(t *testing.T) {
	lab.Unit(t)
	for _, c := range []struct {
		state  agent.PodState
		wrong  error
		volume error
		text   string
		reason string
	}{
		{agent.PodState{}, nil, nil, "", ""},
		{agent.PodState{Name: "a/b", Plan: "small"}, nil, nil, "in force, plan small", "LimitsInForce"},
		{agent.PodState{Name: "a/b", Plan: "small", Held: true}, nil, nil, "held (measured), plan small", "LimitsHeld"},
		{agent.PodState{Name: "a/b", NotHeld: "a reason"}, nil, nil, "not held: a reason", "LimitsNotHeld"},
		{agent.PodState{Name: "a/b", Finding: "a\x1breason"}, nil, nil, `not in force: a\x1breason`, "LimitsNotInForce"},
		{agent.PodState{Name: "a/b"}, errors.New("no"), nil, "wrong: no; the annotations from before count", "AnnotationsWrong"},
		{agent.PodState{Name: "a/b", Held: true}, nil, errors.New("volume v: \x1b"), `wrong: volume v: \x1b; what counted before stays in force`, "VolumeLimitsWrong"},
		{agent.PodState{}, errors.New("no"), errors.New("neither"), "wrong: no; the annotations from before count", "AnnotationsWrong"},
	} {
		if n := newsOf(c.state, c.wrong, c.volume); n == nil || n.text != c.text || n.reason != c.reason {
			t.Errorf("%+v: %+v", c, n)
		}
	}
	if n := newsOf(agent.PodState{Name: "a/b", Settling: true}, nil, nil); n != nil {
		t.Errorf("%+v", n)
	}
}

// A namespace goes, and one of its name comes that names no plan, while the API server is not heard: the pods of the
// namespace are looked at again.
func TestASpaceIsMadeAnew(t *testing.T) {
	lab.Unit(t)
	var changed []string
	c := New(nil, "node-1", false, agent.ClusterOptions{Changed: func(kind, name string) { changed = append(changed, kind+":"+name) }})
	space := func(uid string, all map[string]string) object {
		return object{Metadata: meta{Name: "prod", UID: uid, Annotations: all}}
	}
	c.setSpace(space("u1", map[string]string{"weir.io/plan": "small"}))
	changed = nil
	c.setSpace(space("u2", nil)) // of the next list, as keepSpaces is
	there := func(uid string) bool { return uid == "u2" }
	c.keepSpaces(there)
	if _, plan, _ := c.Of("ua", "prod"); plan != "" || strings.Join(changed, " ") != "pod:" {
		t.Errorf("plan %q; told of %q", plan, changed)
	}
	if c.keepSpaces(there); len(changed) != 1 {
		t.Errorf("told of %q, and nothing has gone", changed)
	}
}
