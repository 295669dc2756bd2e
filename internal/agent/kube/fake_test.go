package kube

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/annotations"
)

// most is far longer than anything here takes.
const most = 20 * time.Second

// A fake is an API server. Its answers to a list and to a watch of pods can be others than usual.
type fake struct {
	t       *testing.T
	server  *httptest.Server
	token   string
	volumes bool // it is asked for volumes too

	mu          sync.Mutex
	lists       map[string][]string // pages of objects, by what is asked for
	events      map[string]chan string
	open        map[string]int // watches that go on
	asked       []*http.Request
	sent        []string // METHOD PATH BODY
	list        func(w http.ResponseWriter, r *http.Request)
	watch       func(w http.ResponseWriter, r *http.Request)
	refusedPath string // what may not be read
	refuse      int    // the status of what is sent; 0: taken
	looks       bool   // weird has not looked at all pods yet
	forbidden   string // a plan that no pod may choose
	changed     []string
	states      []agent.PodState
	log         strings.Builder
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, lists: map[string][]string{}, events: map[string]chan string{}, open: map[string]int{},
		token: filepath.Join(t.TempDir(), "token")}
	if err := os.WriteFile(f.token, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.server = httptest.NewTLSServer(http.HandlerFunc(f.answer))
	t.Cleanup(f.server.Close)
	return f
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	if r.Method == http.MethodGet && f.events[askedFor(r)] == nil {
		f.events[askedFor(r)] = make(chan string, 100)
	}
	f.asked = append(f.asked, r.Clone(context.Background()))
	list, watch, refuse, refused := f.list, f.watch, f.refuse, f.refusedPath
	f.mu.Unlock()
	switch {
	case r.URL.Path == refused:
		http.Error(w, `{"message":"not yours"}`, http.StatusForbidden)
	case r.Method != http.MethodGet:
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.sent = append(f.sent, r.Method+" "+r.URL.Path+" "+string(body))
		f.mu.Unlock()
		if refuse != 0 {
			http.Error(w, `{"message":"you may not\u001b[2J"}`, refuse)
		}
	case r.URL.Query().Get("watch") != "" && watch != nil && r.URL.Path == "/api/v1/pods":
		watch(w, r)
	case r.URL.Query().Get("watch") != "":
		f.stream(w, r)
	case list != nil && r.URL.Path == "/api/v1/pods":
		list(w, r)
	default:
		f.page(w, r)
	}
}

// askedFor is the path of what is asked for, with the name if one object is.
func askedFor(r *http.Request) string {
	if name, is := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); is {
		return r.URL.Path + "/" + name
	}
	return r.URL.Path
}

// tell has the server tell those that watch something.
func (f *fake) tell(what, event string) {
	f.mu.Lock()
	if f.events[what] == nil {
		f.events[what] = make(chan string, 100)
	}
	events := f.events[what]
	f.mu.Unlock()
	events <- event
}

// page answers a page of a list, whose number is the token of the next one.
func (f *fake) page(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pages, number := f.lists[askedFor(r)], 0
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &number)
	more := ""
	if number+1 < len(pages) {
		more = fmt.Sprint(number + 1)
	}
	items := ""
	if number < len(pages) {
		items = pages[number]
	}
	_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"10","continue":%q},"items":[%s]}`, more, items)
}

// stream sends events as they come, until the client goes.
func (f *fake) stream(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	what := askedFor(r)
	f.mu.Lock()
	f.open[what]++
	events := f.events[what]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.open[what]--; f.open[what] == 0 {
			delete(f.open, what)
		}
	}()
	for {
		select {
		case <-r.Context().Done():
			return
		case line := <-events:
			if line == "" {
				return // the server ends the watch
			}
			_, _ = io.WriteString(w, line)
			w.(http.Flusher).Flush()
		}
	}
}

// Write takes the log.
func (f *fake) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(text)
}

// run has a Cluster follow it.
func (f *fake) run() *Cluster { return f.runFor(watchTime) }

// check allows each plan but one.
func (f *fake) check(all map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if plan := all["weir.io/plan"]; plan != "" && plan == f.forbidden {
		return errors.New("the plan " + plan + " is not allowed")
	}
	_, err := annotations.Parse(all)
	return err
}

// runFor is run with watches that long.
func (f *fake) runFor(patience time.Duration) *Cluster {
	f.t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})
	client, err := NewClient(f.server.URL, f.token, authority)
	if err != nil {
		f.t.Fatal(err)
	}
	c := New(client, "node-1", f.volumes, agent.ClusterOptions{
		Changed: func(kind, name string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.changed = append(f.changed, kind+":"+name)
		},
		Pods:   func() []agent.PodState { f.mu.Lock(); defer f.mu.Unlock(); return f.states },
		Looked: func() bool { f.mu.Lock(); defer f.mu.Unlock(); return !f.looks },
		Check:  f.check,
		Log:    slog.New(slog.NewTextHandler(f, nil)),
	})
	c.every, c.patience = 5*time.Millisecond, patience
	ctx, stop := context.WithCancel(f.t.Context())
	done := make(chan bool)
	go func() { defer close(done); c.Run(ctx) }()
	f.t.Cleanup(func() {
		stop()
		select {
		case <-done:
		case <-time.After(most):
			f.t.Error("it does not end")
		}
	})
	return c
}

func (f *fake) await(what string, is func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(most); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.t.Fatalf("%s does not come; sent %q, log\n%s", what, f.sent, f.log.String())
		}
	}
}

// has counts what was sent or logged with a text in it.
func (f *fake) has(text string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.sent {
		if strings.Contains(one, text) {
			n++
		}
	}
	return n + strings.Count(f.log.String(), text)
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// objectOf spells one with annotations.
func objectOf(namespace, name, uid, version string, all map[string]string) string {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name, "uid": uid, "resourceVersion": version, "annotations": all}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func eventOf(kind, its string) string {
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, its)
}
