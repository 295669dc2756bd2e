package web

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
)

// most is far longer than anything here takes.
const most = 20 * time.Second

// await waits for a condition.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			all := make([]byte, 1<<20)
			t.Fatalf("%s: never\n%s", what, all[:runtime.Stack(all, true)])
		}
	}
}

// A client reads a stream.
type client struct {
	t     *testing.T
	lines *bufio.Reader
	leave func()
	code  int
}

func follow(t *testing.T, url string) *client {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, bufio.NewReader(answer.Body), func() { leave(); answer.Body.Close() }, answer.StatusCode}
	t.Cleanup(c.leave)
	return c
}

// next is the kind of the next event, and its data decoded into a variable. An empty kind: the stream
// has ended.
func (c *client) next(into any) (kind string) {
	c.t.Helper()
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			return ""
		}
		line = strings.TrimSuffix(line, "\n")
		if text, is := strings.CutPrefix(line, "event: "); is {
			kind = text
		}
		if text, is := strings.CutPrefix(line, "data: "); is {
			if into != nil {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					c.t.Fatalf("%v in %s", err, text)
				}
			}
			return kind
		}
	}
}

// serving is a page behind a server, which ends with the test.
func serving(t *testing.T, o Options) (*Page, string) {
	t.Helper()
	o.Every = 5 * time.Millisecond
	p := aPage(t, o)
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
	})
	t.Cleanup(p.Close) // streams end first
	return p, server.URL
}

func (p *Page) clients() int {
	p.follow.mu.Lock()
	defer p.follow.mu.Unlock()
	return len(p.follow.clients)
}

// Clients get the whole list, then what changes; one reading serves all. When the last has left,
// nothing is read any more, and no goroutine is left.
func TestStream(t *testing.T) {
	begun := time.Now()
	s := &source{make: func(n int) *watch.Snapshot {
		s := aHost(begun)
		s.At = begun.Add(time.Duration(n) * time.Second)
		s.Groups[3].Devices[0].Rates.WBPS = float64(n) * 1e6
		if n%2 == 1 {
			s.Groups = s.Groups[:6]
		}
		return s
	}}
	p, url := serving(t, Options{Source: s})
	p.o.Plans.Wanted(t.Context(), aHost(begun))
	before := runtime.NumGoroutine()
	a, b, one := follow(t, url+"/stream"), follow(t, url+"/stream"), follow(t, url+"/stream?cgroup="+webPath)
	for _, c := range []*client{a, b} {
		have := map[string]row{}
		for i := range 6 {
			var e listEvent
			if kind := c.next(&e); kind != listKind || e.Whole != (i == 0) || e.Version != "1.2.3" {
				t.Fatalf("event %d: %q, %+v", i, kind, e)
			}
			for _, id := range e.Gone {
				delete(have, id)
			}
			for _, r := range e.Rows {
				have[r.ID] = r
			}
			if i > 0 && len(e.Rows) > 2 {
				t.Errorf("%d rows are sent, and two have changed", len(e.Rows))
			}
			if r := have[idOf(webPath)]; len(have) < 6 || r.Target != "docker:web" {
				t.Errorf("event %d: %d rows, %+v", i, len(have), r)
			}
		}
	}
	var e groupEvent
	if kind := one.next(&e); kind != groupKind || e.Cells["0.wbps.now"] == "" || e.Point == nil || e.Shape == "" {
		t.Errorf("%q, %+v", kind, e)
	}
	if p.clients() != 3 {
		t.Errorf("%d clients", p.clients())
	}
	a.leave()
	b.leave()
	one.leave()
	await(t, "all clients gone", func() bool { return p.clients() == 0 })
	p.follow.work.Wait() // the reading has ended
	reads := s.count()
	time.Sleep(20 * time.Millisecond) // four times what lies between two readings
	if s.count() != reads {
		t.Error("it reads on, for nobody")
	}
	await(t, "no goroutine left", func() bool {
		http.DefaultClient.CloseIdleConnections()
		return runtime.NumGoroutine() <= before
	})
	// And it begins anew.
	var again listEvent
	if kind := follow(t, url+"/stream").next(&again); kind != listKind || !again.Whole {
		t.Errorf("%q, %+v", kind, again)
	}
}

// A timed answer notes the deadlines that a handler sets.
type timed struct {
	*httptest.ResponseRecorder
	read, write []time.Time
	wrote       func(n int) // is told of each write
	writes      int
}

func (w *timed) SetReadDeadline(at time.Time) error  { w.read = append(w.read, at); return nil }
func (w *timed) SetWriteDeadline(at time.Time) error { w.write = append(w.write, at); return nil }
func (w *timed) Write(text []byte) (int, error) {
	w.writes++
	w.wrote(w.writes)
	return w.ResponseRecorder.Write(text)
}

// The times that a server gives requests and answers do not end a stream: it takes the first away,
// because the server reads on, and sets the other one for each event.
func TestStreamOutlivesDeadlines(t *testing.T) {
	p := aPage(t, Options{Every: 5 * time.Millisecond})
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/stream", nil)
	r.Host = "localhost"
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	w.wrote = func(n int) {
		if len(w.read) != 1 || !w.read[0].IsZero() || len(w.write) != n || time.Until(w.write[n-1]) > sendMost {
			t.Errorf("write %d: to read until %v, to write until %v", n, w.read, w.write)
		}
		if n == 5 {
			leave()
		}
	}
	p.ServeHTTP(w, r)
	if w.writes < 5 || p.clients() != 0 {
		t.Errorf("%d writes, %d clients", w.writes, p.clients())
	}
}

// There are so many streams and no more; who leaves makes room.
func TestStreamsAreBounded(t *testing.T) {
	p, url := serving(t, Options{})
	var all []*client
	for range streamsMost {
		all = append(all, follow(t, url+"/stream"))
	}
	await(t, "all follow", func() bool { return p.clients() == streamsMost })
	if c := follow(t, url+"/stream"); c.code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", c.code)
	}
	all[3].leave()
	await(t, "room", func() bool { return p.clients() < streamsMost })
	if c := follow(t, url+"/stream"); c.code != http.StatusOK || c.next(nil) != listKind {
		t.Errorf("after one has left: %d", c.code)
	}
}

// A client that does not take its events is dropped, and holds nobody up.
func TestSlowClients(t *testing.T) {
	p, url := serving(t, Options{})
	frames, leave := p.follow.join()
	if frames == nil {
		t.Fatal("no room")
	}
	defer leave()
	quick := follow(t, url+"/stream")
	for range 3 * queued {
		if kind := quick.next(nil); kind != listKind {
			t.Fatalf("%q", kind)
		}
	}
	await(t, "the slow one is dropped", func() bool { return p.clients() == 1 })
	n := 0
	for range frames {
		n++
	}
	if n > queued {
		t.Errorf("%d events were kept", n)
	}
}

// What cannot be read is told, and all is well afterwards.
func TestStreamOfTrouble(t *testing.T) {
	s := &source{make: func(int) *watch.Snapshot { return aHost(time.Now()) }}
	_, url := serving(t, Options{Source: s})
	c := follow(t, url+"/stream")
	if kind := c.next(nil); kind != listKind {
		t.Fatalf("%q", kind)
	}
	s.fail("the kernel is asleep")
	var why string
	for kind := ""; kind != troubleKind; {
		if kind = c.next(nil); kind == "" {
			t.Fatal("the stream has ended")
		}
	}
	for _, one := range []*client{c, follow(t, url+"/stream")} {
		if kind := one.next(&why); kind != troubleKind || why != "the kernel is asleep" {
			t.Errorf("%q: %q", kind, why)
		}
	}
	s.fail("")
	for {
		var e listEvent
		kind := c.next(&e)
		if kind == listKind {
			if !e.Whole {
				t.Error("the list is not whole after trouble")
			}
			return
		}
		if kind == "" {
			t.Fatal("the stream has ended")
		}
	}
}

// The end of the page ends its streams.
func TestCloseEndsStreams(t *testing.T) {
	p, url := serving(t, Options{})
	c := follow(t, url+"/stream")
	if kind := c.next(nil); kind != listKind {
		t.Fatalf("%q", kind)
	}
	p.Close()
	for c.next(nil) != "" {
	}
	if c := follow(t, url+"/stream"); c.code != http.StatusServiceUnavailable {
		t.Errorf("after the end: %d", c.code)
	}
}
