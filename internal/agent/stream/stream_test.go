package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/lab"
)

// patience is far longer than anything here takes.
const patience = 30 * time.Second

// An own one counts what it was asked for.
type own struct{ reads, open, closed atomic.Int64 }

func (o *own) Sample(context.Context) (*watch.Snapshot, error) {
	o.reads.Add(1)
	return &watch.Snapshot{At: time.Now(), Version: cgroupfs.V2, Groups: []*watch.Group{{Path: "/own", Target: "own"}}}, nil
}

func (*own) Plans(context.Context, *watch.Snapshot) map[string]string {
	return map[string]string{"/own": "mine"}
}
func (o *own) Close() error { o.closed.Add(1); return nil }

// A weird answers at a socket as a test says.
type weird struct {
	t      *testing.T
	socket string
	l      net.Listener

	patience time.Duration // of who asks it; 0: as usual
}

func newWeird(t *testing.T) *weird {
	t.Helper()
	lab.Unit(t)
	return &weird{t: t, socket: filepath.Join(t.TempDir(), "read.sock")}
}

// serve answers each client with do, until it is stopped or the test ends.
func (w *weird) serve(do http.HandlerFunc) (stop func()) {
	w.t.Helper()
	_ = os.Remove(w.socket)
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	w.l = l
	server := &http.Server{Handler: do, ReadHeaderTimeout: patience}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	stop = func() { _ = server.Close(); <-done }
	w.t.Cleanup(stop)
	return stop
}

// raw answers each client's first question with bytes, and then with nothing.
func (w *weird) raw(text string) {
	w.t.Helper()
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.t.Cleanup(func() { _ = c.Close() })
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil { // what comes before it is no answer
				_, _ = io.WriteString(c, text)
			}
		}
	}()
}

func (w *weird) source(o *own) *Source {
	w.t.Helper()
	s := New(Options{Socket: w.socket, Every: 10 * time.Millisecond, Open: func() (Own, error) { o.open.Add(1); return o, nil }, patience: w.patience})
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

// until takes readings until one is as wanted.
func until(t *testing.T, s *Source, is func(Reading) bool) Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		v, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if v.Snapshot == nil {
			t.Fatal("a reading without groups")
		}
		if is(v) {
			return v
		}
	}
}

func fromWeird(v Reading) bool { return v.Source.From == api.FromWeird }
func fromSelf(v Reading) bool  { return v.Source.From == api.FromTop }

// tell tells one reading after the other, as weird does.
func tell(w http.ResponseWriter, r *http.Request, every time.Duration, frames func(i int) api.TopFrame) {
	out := http.NewResponseController(w)
	_, _ = fmt.Fprint(w, ": hello\n\n")
	var before *watch.Snapshot
	for i := 0; ; i++ {
		f := frames(i)
		f.Events(before, func(text []byte) bool {
			_, err := fmt.Fprintf(w, "event: top\ndata: %s\n\n", text)
			return err == nil && out.Flush() == nil
		})
		before = f.Snapshot
		select {
		case <-r.Context().Done():
			return
		case <-time.After(every):
		}
	}
}

func weirds() api.TopBeside {
	return api.TopBeside{Source: api.TopSource{From: api.FromWeird, Version: "9.9"}, Plans: map[string]string{"/a": "small"}, Held: func(path string) *api.AgentHeld {
		if path != "/a" {
			return nil
		}
		return &api.AgentHeld{State: "held", Code: "dax", Why: "because"}
	}}
}

func frames(i int) api.TopFrame {
	return api.TopFrame{Beside: weirds(), Snapshot: &watch.Snapshot{At: time.Now(), Window: Every, Version: cgroupfs.V2, Watched: 3, Groups: []*watch.Group{
		{Path: "/a", Target: "docker:web", Devices: []watch.Device{{Rates: &watch.Rates{WBPS: float64(i)}}}}, {Path: fmt.Sprintf("/g%d", i%3), Target: "x"}}}}
}

// The readings are weird's as long as it tells, with what it knows; nobody reads beside it. When it ends, the
// readings are one's own, and when another one begins, that one's.
func TestWeirdEndsAndComesBack(t *testing.T) {
	w, o := newWeird(t), &own{}
	stop := w.serve(func(out http.ResponseWriter, r *http.Request) { tell(out, r, 20*time.Millisecond, frames) })
	s := w.source(o)
	last := -1.0
	for range 5 {
		v := until(t, s, func(Reading) bool { return true })
		g := v.Snapshot.Groups
		if !fromWeird(v) || v.Source.Version != "9.9" || len(g) != 2 || g[0].Target != "docker:web" || g[0].Devices[0].Rates.WBPS <= last || v.Plans["/a"] != "small" || v.Told["/a"].State != "held" || v.Told["/a"].Why != "because" {
			t.Fatalf("%+v", v)
		}
		last = g[0].Devices[0].Rates.WBPS
	}
	if o.open.Load() != 0 {
		t.Error("it reads beside weird")
	}
	stop()
	v := until(t, s, fromSelf)
	if v.Source.Why == "" || v.Plans["/own"] != "mine" || len(v.Told) != 0 {
		t.Errorf("%+v", v)
	}
	until(t, s, func(v Reading) bool { return v.Source.Why == errAbsent.Error() }) // one ran before: that is said
	w.serve(func(out http.ResponseWriter, r *http.Request) { tell(out, r, 20*time.Millisecond, frames) })
	until(t, s, fromWeird)
	reads := o.reads.Load()
	for range 5 {
		until(t, s, fromWeird)
	}
	if o.reads.Load() != reads || o.closed.Load() != 1 || o.open.Load() != 1 {
		t.Errorf("it goes on reading beside weird: %d, open %d, closed %d", o.reads.Load()-reads, o.open.Load(), o.closed.Load())
	}
}

// weird ends each request after an hour. What follows asks again, and has no reading of its own between.
func TestARequestEnds(t *testing.T) {
	w, o := newWeird(t), &own{}
	var asked atomic.Int64
	w.serve(func(out http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if asked.Add(1) == 1 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, endedLeast+500*time.Millisecond)
			defer cancel()
		}
		tell(out, r.WithContext(ctx), 50*time.Millisecond, frames)
	})
	s := w.source(o)
	until(t, s, fromWeird)
	opened := o.open.Load()
	until(t, s, func(Reading) bool { return asked.Load() == 2 })
	for range 3 {
		until(t, s, fromWeird)
	}
	if o.open.Load() != opened {
		t.Error("it read by itself meanwhile")
	}
}

// Where no weird runs, nothing is said of that, and nobody is waited for.
func TestNoWeird(t *testing.T) {
	w, o := newWeird(t), &own{}
	began := time.Now()
	s := w.source(o)
	for range 3 {
		if v := until(t, s, fromSelf); v.Source.Why != "" {
			t.Errorf("%+v", v.Source)
		}
	}
	if took := time.Since(began); took > patience/3 {
		t.Errorf("it took %v", took)
	}
	alone := New(Options{Every: time.Millisecond, Open: func() (Own, error) { return o, nil }})
	if v := until(t, alone, fromSelf); v.Source.Why != "" {
		t.Errorf("%+v", v.Source)
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
}

// Who may not ask is told who may. (Root may in tests.)
func TestDenied(t *testing.T) {
	lab.Unit(t)
	if err := wrong(t.Context(), "/x", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", os.ErrPermission)}); !strings.Contains(err.Error(), "weir-read") {
		t.Error(err)
	}
}

// Groups whose names differ in bytes that are not UTF-8 are others, and each goes by itself.
func TestNamesThatAreNotUTF8(t *testing.T) {
	lab.Unit(t)
	one, two := &watch.Group{Path: "/a\xfe", Target: "cgroup:/a\xfe"}, &watch.Group{Path: "/a\xff", Target: "cgroup:/a\xff"}
	both := &watch.Snapshot{Version: cgroupfs.V2, Groups: []*watch.Group{one, two}}
	var s state
	take := func(f api.TopFrame, before *watch.Snapshot) (paths []string) {
		f.Events(before, func(text []byte) bool {
			if _, err := s.take(text); err != nil {
				t.Fatal(err)
			}
			return true
		})
		for _, g := range s.view.Snapshot.Groups {
			if g.Target != "cgroup:"+g.Path {
				t.Errorf("%q is %q", g.Path, g.Target)
			}
			paths = append(paths, g.Path)
		}
		return paths
	}
	plans := api.TopBeside{Plans: map[string]string{two.Path: "small"}}
	if got := take(api.TopFrame{Snapshot: both, Beside: plans}, nil); !slices.Equal(got, []string{one.Path, two.Path}) || len(s.view.Plans) != 1 || s.view.Plans[two.Path] != "small" {
		t.Errorf("%q, plans %q", got, s.view.Plans)
	}
	left := &watch.Snapshot{Version: cgroupfs.V2, Groups: []*watch.Group{two}}
	if got := take(api.TopFrame{Snapshot: left, Beside: plans, Same: func(string) bool { return true }}, both); !slices.Equal(got, []string{two.Path}) {
		t.Errorf("%q", got)
	}
}

// A weird that tells without a pause is not read faster than it is of use.
func TestAFloodOfReadings(t *testing.T) {
	w, o := newWeird(t), &own{}
	w.serve(func(out http.ResponseWriter, r *http.Request) { tell(out, r, 0, frames) })
	s := w.source(o)
	until(t, s, fromWeird)
	n, began := 0, time.Now()
	for time.Since(began) < time.Second {
		until(t, s, fromWeird)
		n++
	}
	if n > int(time.Second/readingLeast)+2 {
		t.Errorf("%d readings a second", n)
	}
}

// Groups that vanish are gone, and come back as others. 2,000 groups of which few change cost little.
func TestManyGroups(t *testing.T) {
	lab.Unit(t)
	all := &watch.Snapshot{At: time.Now(), Window: Every, Version: cgroupfs.V2}
	for i := range 2000 {
		all.Groups = append(all.Groups, &watch.Group{Path: fmt.Sprintf("/slice/g%04d.service", i), Target: "unit:x", Devices: []watch.Device{{Node: "/dev/sda"}}})
	}
	var s state
	feed := func(f api.TopFrame, before *watch.Snapshot) *watch.Snapshot {
		done := false
		f.Events(before, func(text []byte) bool {
			var err error
			if done, err = s.take(text); err != nil {
				t.Fatal(err)
			}
			return true
		})
		if !done {
			t.Fatal("the reading is not whole")
		}
		return s.view.Snapshot
	}
	same := func(string) bool { return true }
	first := feed(api.TopFrame{Snapshot: all, Same: same}, nil)
	if len(first.Groups) != 2000 {
		t.Fatalf("%d groups", len(first.Groups))
	}
	gone := *all
	gone.Groups = append([]*watch.Group{}, all.Groups[1:]...)
	second := feed(api.TopFrame{Snapshot: &gone, Same: same}, all)
	if len(second.Groups) != 1999 || second.Groups[0] != first.Groups[1] {
		t.Errorf("%d groups; one that did not change is another one", len(second.Groups))
	}
	third := feed(api.TopFrame{Snapshot: all, Same: same}, &gone)
	if len(third.Groups) != 2000 || third.Groups[0] == first.Groups[0] || third.Groups[0].Path != all.Groups[0].Path {
		t.Errorf("%d groups; the one that came back is the former one", len(third.Groups))
	}
	if s.bytes <= 0 || s.bytes > allMost {
		t.Errorf("%d bytes", s.bytes)
	}
	for range 20 {
		feed(api.TopFrame{Snapshot: &gone, Same: same}, all)
		feed(api.TopFrame{Snapshot: all, Same: same}, &gone)
	}
	sum := 0
	for _, k := range s.groups {
		sum += k.size
	}
	if sum != s.bytes {
		t.Errorf("%d bytes are counted, and there are %d", s.bytes, sum)
	}
}

// The end of the context ends a wait.
func TestTheEnd(t *testing.T) {
	w, o := newWeird(t), &own{}
	w.raw("")
	s := w.source(o)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
