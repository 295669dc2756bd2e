package routes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/stream"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/lab"
)

// patience is far longer than anything here takes.
const patience = 20 * time.Second

// A fake agent answers what a test says.
type fake struct {
	mu     sync.Mutex
	status agent.Status
	by     []string
	query  journal.Query
	broken error                                      // what Diff, Snapshot, Log and ReloadFor fail with
	newer  func(seen *watch.Snapshot) *watch.Snapshot // nil: there are no groups
	hangs  chan struct{}                              // not nil: Diff waits for it, or for its context
}

func (f *fake) Status() agent.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status
	s.Targets = append([]reconcile.Status(nil), s.Targets...)
	return s
}

func (f *fake) Snapshot(context.Context) (*watch.Snapshot, error) {
	return &watch.Snapshot{Groups: []*watch.Group{{Path: "/a", Target: "docker:web"}}}, f.broken
}

func (f *fake) Newer(_ context.Context, seen *watch.Snapshot) (*watch.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newer == nil {
		return &watch.Snapshot{At: time.Now(), Window: stream.Every, Version: cgroupfs.V2}, f.broken
	}
	return f.newer(seen), f.broken
}

func (f *fake) Plans() *plans.Config {
	c, _ := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte("plans: {small: {write: 1MB/s}}")}})
	return c
}

func (f *fake) Diff(ctx context.Context) (planned.Report, error) {
	if f.hangs != nil {
		select {
		case <-f.hangs:
		case <-ctx.Done():
			return planned.Report{}, ctx.Err()
		}
	}
	return planned.Report{Targets: []planned.Target{{Name: "docker:web", State: planned.InForce}}}, f.broken
}

func (f *fake) Log(q journal.Query) (journal.Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.query = q
	return journal.Log{Entries: []journal.Entry{{Target: "docker:web", What: journal.Set}}}, f.broken
}

func (f *fake) ReloadFor(by string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by = append(f.by, by)
	return f.broken
}

func newFake() *fake {
	return &fake{status: agent.Status{Targets: []reconcile.Status{{Key: "docker:1", Name: "docker:web", Plan: "small", State: reconcile.InForce}, {Key: "docker:2", Name: "docker:db"}},
		Held: map[string]agent.Held{"docker:1": {Verdict: held.Verdict{State: held.Held}}}}}
}

// A served API has two sockets.
type served struct {
	t            *testing.T
	dir          string
	read, change string
	stop         context.CancelFunc
	done         chan error
}

func serve(t *testing.T, f *fake, gid *int) *served {
	t.Helper()
	lab.Unit(t)
	s := &served{t: t, dir: t.TempDir(), done: make(chan error, 3)}
	s.read, s.change = filepath.Join(s.dir, ReadSocket), filepath.Join(s.dir, ChangeSocket)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	a := New(f, Options{Version: "1.2.3"})
	go func() { a.Run(ctx); s.done <- nil }()
	for path, change := range map[string]bool{s.read: false, s.change: true} {
		l, err := health.ListenFor(path, gid)
		if err != nil {
			t.Fatal(err)
		}
		go func() { s.done <- health.ServeHandler(ctx, l, a.Handler(change)) }()
	}
	t.Cleanup(func() {
		stop()
		for range 3 {
			select {
			case err := <-s.done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Fatal("it does not end")
			}
		}
	})
	return s
}

func clientOf(socket string) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
}

func (s *served) ask(socket, method, path, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://weird"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := clientOf(socket).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Each route answers with its document; what may not be asked is refused, with the reason.
func TestRoutes(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	for _, c := range []struct {
		socket, method, path, body string
		status                     int
		says                       string
	}{
		{s.read, "GET", "/health", "", 200, `{"schema":"weir.health/1","version":"1.2.3"`},
		{s.read, "GET", "/status", "", 200, `"target":"docker:db"`},
		{s.read, "GET", "/status?target=docker:web", "", 200, `"targets":[{"target":"docker:web","plan":"small","state":"in-force"`},
		{s.read, "GET", "/status?target=docker:x", "", 404, "no target of this name"},
		{s.read, "GET", "/status?target=a&target=b", "", 400, "2 times"},
		{s.read, "GET", "/status?frob=1", "", 400, `no parameter \"frob\"`},
		{s.read, "GET", "/status?target=" + strings.Repeat("x", queryMost), "", 400, "longer than 4096 bytes"},
		{s.read, "GET", "/status?%zz", "", 400, "invalid URL escape"},
		{s.read, "GET", "/top", "", 200, `"schema":"weir.top/1"`},
		{s.read, "GET", "/plans", "", 200, `"plan":"small"`},
		{s.read, "GET", "/plans/diff", "", 200, `"schema":"weir.plan.targets/1"`},
		{s.read, "POST", "/plans/check", "plans: {a: {write: 1MB/s}}", 200, `"plan":"a"`},
		{s.read, "POST", "/plans/check", "plans: {a: {wirte: 1MB/s}}", 400, "request:1:13"},
		{s.read, "POST", "/plans/check", strings.Repeat("#", plans.FileBytesMax+2), 400, "too large"},
		{s.read, "GET", "/log?target=docker:web&since=2026-11-26T09:00:00Z&most=7", "", 200, `"schema":"weir.log/1"`},
		{s.read, "GET", "/log?most=0", "", 400, "write a number from 1 on"},
		{s.read, "GET", "/log?since=soon", "", 400, "write a time as"},
		{s.read, "POST", "/reload", "", 403, "this socket is for reading"},
		{s.change, "POST", "/reload", "", 200, `"schema":"weir.plan/1"`},
		{s.change, "GET", "/reload", "", 405, "the method is POST"},
		{s.change, "GET", "/status", "", 200, `"schema":"weir.agent/1"`},
		{s.read, "DELETE", "/status", "", 405, "the method is GET"},
		{s.read, "POST", "/events", "", 405, "the method is GET"},
		{s.read, "GET", "/events?x=1", "", 400, `no parameter \"x\"; it takes none`},
		{s.read, "GET", "/", "", 404, "nothing is there; /health, /status"},
		{s.read, "GET", "/metrics", "", 404, "nothing is there"},
	} {
		status, text := s.ask(c.socket, c.method, c.path, c.body)
		var doc api.Schema
		if status != c.status || !strings.Contains(text, c.says) || json.Unmarshal([]byte(text), &doc) != nil || !strings.HasPrefix(doc.Schema, "weir.") {
			t.Errorf("%s %.60s: %d %.300s, want %d %s", c.method, c.path, status, text, c.status, c.says)
		}
	}
	if len(f.by) != 1 || !strings.HasPrefix(f.by[0], "uid ") {
		t.Errorf("reloaded by %q", f.by)
	}
	if f.query.Target != "docker:web" || f.query.Most != 7 || f.query.Since.IsZero() {
		t.Errorf("%+v", f.query)
	}
}

// What fails is told: of a comparison with what was found all the same.
func TestFailures(t *testing.T) {
	f := newFake()
	f.broken = errors.New("podman hangs")
	s := serve(t, f, nil)
	for path, want := range map[string]int{"/plans/diff": 200, "/top": 500, "/log": 500} {
		if status, text := s.ask(s.read, "GET", path, ""); status != want || !strings.Contains(text, "podman hangs") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := s.ask(s.change, "POST", "/reload", ""); status != 400 || !strings.Contains(text, "the previous plans stay in force: podman hangs") {
		t.Errorf("%d %s", status, text)
	}
}

// Requests that hang take their own turns: others are told to come again, and once one has ended its
// turn is free.
func TestBusy(t *testing.T) {
	f := newFake()
	f.hangs = make(chan struct{})
	s := serve(t, f, nil)
	var asking sync.WaitGroup
	for range workersMost {
		asking.Go(func() {
			if status, text := s.ask(s.read, "GET", "/plans/diff", ""); status != 200 {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	began := time.Now()
	for { // until all four hang
		status, text := s.ask(s.read, "GET", "/status", "")
		if status == http.StatusServiceUnavailable && strings.Contains(text, "busy") {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("%d %s", status, text)
		}
	}
	if status, text := s.ask(s.change, "POST", "/reload", ""); status != 200 {
		t.Errorf("readers keep others from changing: %d %s", status, text)
	}
	close(f.hangs)
	asking.Wait()
	if status, text := s.ask(s.read, "GET", "/status", ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// A follower is told of each change, and of nothing else. When the agent ends, so does the stream.
func TestEvents(t *testing.T) {
	f := newFake()
	s := serve(t, f, nil)
	answer, err := clientOf(s.read).Get("http://weird/events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v", answer.Header)
	}
	lines := bufio.NewScanner(answer.Body)
	next := func() string {
		for lines.Scan() {
			if text, is := strings.CutPrefix(lines.Text(), "data: "); is {
				return text
			}
		}
		return ""
	}
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), ":") {
		t.Fatal(lines.Text())
	}
	f.mu.Lock()
	f.status.Targets[0].State, f.status.Targets[0].Finding = reconcile.Failed, "no such\ndevice"
	f.mu.Unlock()
	if got := next(); got != `{"schema":"weir.agent.event/1","target":"docker:web","plan":"small","state":"failed","held":"held","finding":"no such\ndevice","ended":false}` {
		t.Error(got)
	}
	f.mu.Lock()
	f.status.Targets = f.status.Targets[:1]
	f.mu.Unlock()
	if got := next(); !strings.Contains(got, `"target":"docker:db"`) || !strings.Contains(got, `"ended":true`) {
		t.Error(got)
	}
	s.stop()
	if got := next(); got != "" || lines.Err() != nil && !errors.Is(lines.Err(), io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, lines.Err())
	}
}

// A follower that does not read is sent away, and delays neither the agent nor others; more than a few
// are refused.
func TestSlowFollowers(t *testing.T) {
	lab.Unit(t)
	f := newFake()
	a := newChangeFeed(f)
	slow, ok := a.follow()
	if !ok {
		t.Fatal("not followed")
	}
	quick, _ := a.follow()
	began := time.Now()
	for i := range eventsMost + 1 {
		f.status.Targets[0].Finding = fmt.Sprint(i)
		a.look()
		<-quick
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it took %v", took)
	}
	for range eventsMost {
		<-slow
	}
	if _, open := <-slow; open || len(a.all) != 1 {
		t.Errorf("the slow one is still there, of %d", len(a.all))
	}
	for range followersMost {
		_, ok = a.follow()
	}
	if ok || len(a.all) != followersMost {
		t.Errorf("%d followers", len(a.all))
	}
	a.end()
	if len(a.all) != 0 {
		t.Error("followers are left")
	}
}

// A client that follows and reads nothing is left by the server, which goes on.
func TestAClientThatDoesNotRead(t *testing.T) {
	f := newFake()
	for i := range 200 {
		f.status.Targets = append(f.status.Targets, reconcile.Status{Key: fmt.Sprint("docker:x", i), Name: fmt.Sprint("docker:x", i)})
	}
	s := serve(t, f, nil)
	conn, err := net.Dial("unix", s.read)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: weird\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for i := range 8 { // more than the socket's buffer
		f.mu.Lock()
		for at := range f.status.Targets {
			f.status.Targets[at].Finding = strings.Repeat("x", 1000) + fmt.Sprint(i)
		}
		f.mu.Unlock()
		if status, _ := s.ask(s.read, "GET", "/health", ""); status != 200 {
			t.Fatal(status)
		}
		time.Sleep(lookEvery)
	}
}
