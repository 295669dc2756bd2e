package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// A stand-in is a source with targets of its own.
type standIn struct {
	kind string
	with string // the kind whose targets have the same groups; empty: none

	mu      sync.Mutex
	now     map[string]uint64
	want    uint64
	hangs   bool          // nothing is answered until the context ends
	broken  error         // what Look and Follow fail with
	deaf    error         // what Follow fails with
	beside  error         // what Look says beside its targets
	stuck   chan bool     // not nil: Put waits for it, and for nothing else
	late    time.Duration // until its events come
	slow    time.Duration // a look takes so long
	reads   int           // of rules
	puts    []time.Time
	looks   int
	wholes  int // of them: at everything
	follows []time.Time
	changed func(string)
	dead    chan error
}

func newStandIn(kind string, names ...string) *standIn {
	s := &standIn{kind: kind, now: map[string]uint64{}, want: 10, dead: make(chan error)}
	for _, n := range names {
		s.now[n] = 0
	}
	return s
}

func (s *standIn) Kind() string { return s.kind }

func (s *standIn) wait(ctx context.Context) error {
	s.mu.Lock()
	hangs, broken := s.hangs, s.broken
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return broken
}

func (s *standIn) Look(ctx context.Context, names []string) ([]Target, error) {
	s.mu.Lock()
	s.looks++
	if names == nil {
		s.wholes++
	}
	slow := s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if names == nil {
		for n := range s.now {
			names = append(names, n)
		}
	}
	var all []Target
	for _, n := range names {
		if now, there := s.now[n]; there {
			all = append(all, Target{Key: s.kind + ":" + n, Name: s.kind + ":" + n, Group: "/" + cmp.Or(s.with, s.kind) + "/" + n, Plan: "small", Rates: []Rates{{Device: blkdev.Number{Major: 8}, Now: rate(now), Want: rate(s.want)}}})
		}
	}
	return all, s.beside
}

func (s *standIn) Put(ctx context.Context, key string) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if stuck := s.stuck; stuck != nil {
		s.mu.Unlock()
		<-stuck
		s.mu.Lock()
	}
	s.now[strings.TrimPrefix(key, s.kind+":")] = s.want
	s.puts = append(s.puts, time.Now())
	return nil
}

func (s *standIn) Follows() bool { return true }

func (s *standIn) Alone() bool { return s.kind != "pod" }

func (s *standIn) Rules(_ context.Context, group string) ([]Rates, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return []Rates{{Device: blkdev.Number{Major: 8}, Now: rate(s.now[path.Base(group)])}}, s.broken
}

func (s *standIn) Follow(ctx context.Context, changed func(string)) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.late):
	}
	s.mu.Lock()
	s.follows = append(s.follows, time.Now())
	s.changed = changed
	broken := cmp.Or(s.broken, s.deaf)
	s.mu.Unlock()
	if broken != nil {
		return broken
	}
	changed("")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-s.dead:
		return err
	}
}

func (s *standIn) set(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// run runs a Loop in a bubble of time, where all waits take no time.
func run(t *testing.T, test func(t *testing.T, l *Loop, of func(string) *standIn), all ...*standIn) {
	t.Helper()
	lab.Unit(t)
	synctest.Test(t, func(t *testing.T) {
		var sources []Source
		for _, s := range all {
			s.dead = make(chan error) // of the bubble
			sources = append(sources, s)
		}
		l := NewLoop(NewCore(), slog.New(slog.DiscardHandler), sources...)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() { l.Run(ctx); close(done) }()
		synctest.Wait()
		test(t, l, func(kind string) *standIn {
			for _, s := range all {
				if s.kind == kind {
					return s
				}
			}
			return nil
		})
		stop()
		<-done
	})
}

func (s *standIn) inForce(t *testing.T) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, now := range s.now {
		if now != s.want {
			t.Errorf("%s:%s has %d, want %d", s.kind, n, now, s.want)
		}
	}
}

func TestEventsAreKept(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.inForce(t)
		if len(s.puts) != 2 {
			t.Errorf("%d changes of 2 targets", len(s.puts))
		}
		began := time.Now()
		s.set(func() { s.now["new"] = 0; s.now["web"] = 3 })
		looks := 0
		s.set(func() { looks = s.looks })
		s.changed("new")
		s.changed("web")
		s.inForce(t)
		if s.looks > looks+2 {
			t.Errorf("%d looks for two events", s.looks-looks)
		}
		if time.Since(began) != 0 {
			t.Errorf("it takes %v", time.Since(began))
		}
		if all, counts := l.Core.Status(); len(all) != 3 || counts != (Counts{Drifts: 1, Repaired: 1, Applied: Applied{Count: 4, Within: [14]uint64{4}}}) {
			t.Errorf("%+v %+v", all, counts)
		}
		// Another plan, for all of a kind.
		s.set(func() { s.want = 20 })
		l.Changed("unit", "")
		synctest.Wait()
		if s.now["web"] != 10 {
			t.Error("another kind's change")
		}
		l.Changed("", "")
		s.inForce(t)
		// What ends is forgotten.
		s.set(func() { clear(s.now) })
		s.changed("")
		synctest.Wait()
		if all, _ := l.Core.Status(); len(all) != 0 {
			t.Errorf("%+v", all)
		}
	}, newStandIn("docker", "web", "db"))
}

// A source that hangs or is broken delays no other, and is kept when it answers again.
func TestAHangingSourceDelaysNoOther(t *testing.T) {
	hanging, broken := newStandIn("podman", "p"), newStandIn("pod", "q")
	hanging.hangs, broken.broken = true, errors.New("connection refused")
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		select {
		case <-l.Looked():
			t.Error("all have looked")
		default:
		}
		for i := range 100 {
			began, name := time.Now(), fmt.Sprint(i)
			s.set(func() { s.now[name] = 0 })
			s.changed(name)
			s.inForce(t)
			if time.Since(began) != 0 {
				t.Fatalf("it takes %v", time.Since(began))
			}
			time.Sleep(time.Second)
		}
		for _, f := range l.Sources() {
			switch {
			case f.Kind == "docker" && f.Follows && f.Error == "" && f.LookError == "":
			case f.Kind == "podman" && f.Follows && f.LookError == "no answer within 30s":
			case f.Kind == "pod" && !f.Follows && f.Error == "connection refused" && f.LookError == "connection refused" && f.Reconnects > 2:
			default:
				t.Errorf("%+v", f)
			}
		}
		hanging.set(func() { hanging.hangs = false })
		broken.set(func() { broken.broken = nil })
		time.Sleep(LookMost + reconnectMost)
		hanging.inForce(t)
		broken.inForce(t)
		<-l.Looked()
	}, newStandIn("docker"), hanging, broken)
}

// A source that dies again and again is followed again, ever more rarely; one that has worked is
// followed again at once.
func TestReconnects(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.set(func() { s.broken = errors.New("gone") })
		s.dead <- errors.New("gone")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		s.mu.Lock()
		var waits []time.Duration
		for i := 2; i < len(s.follows); i++ {
			waits = append(waits, s.follows[i].Sub(s.follows[i-1]))
		}
		s.mu.Unlock()
		for i, w := range waits {
			if want := min(reconnectLeast<<(i+1), reconnectMost); w != want {
				t.Fatalf("attempt %d after %v, want %v", i, w, want)
			}
		}
		if len(waits) < 12 || len(waits) > 25 {
			t.Errorf("%d attempts in ten minutes", len(waits))
		}
		s.set(func() { s.broken = nil; s.now["missed"] = 0 })
		time.Sleep(reconnectMost)
		s.inForce(t)
		time.Sleep(2 * reconnectMost)
		began := time.Now()
		s.set(func() { s.now["later"] = 0 })
		s.dead <- errors.New("gone")
		time.Sleep(reconnectLeast)
		s.inForce(t)
		if got := s.follows[len(s.follows)-1].Sub(began); got != reconnectLeast {
			t.Errorf("followed again after %v", got)
		}
	}, newStandIn("docker"))
}

// What is not here is no error as long as it was never here, and is found soon when it comes.
func TestWhatIsNotHereIsLookedFor(t *testing.T) {
	absent := newStandIn("podman")
	absent.broken = fmt.Errorf("%w: there is no Podman", ErrNotHere)
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		is := func(follows bool, text string) {
			t.Helper()
			synctest.Wait()
			if f := l.Sources()[0]; f.Follows != follows || !strings.Contains(f.Error, text) || text == "" && f.Error != "" {
				t.Errorf("%+v", f)
			}
		}
		time.Sleep(10 * time.Minute)
		is(false, "")
		if n := l.Sources()[0].Reconnects; n != 0 {
			t.Errorf("%d reconnects to what was never here", n)
		}
		absent.set(func() { absent.broken = nil })
		time.Sleep(notHereMost)
		is(true, "")
		absent.set(func() { absent.broken = fmt.Errorf("%w: there is no Podman", ErrNotHere) })
		absent.dead <- errors.New("it has ended")
		time.Sleep(reconnectMost)
		is(false, "there is no Podman")
	}, absent)
}

// A change that fails is tried again, without an event.
func TestTriesAgainWithoutAnEvent(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		fail := true
		l.sources["docker"].Source = failing{s, &fail}
		s.set(func() { s.now["web"] = 0 })
		s.changed("web")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := l.Core.only(t); st.State != Failed || st.Finding != "disk is gone" {
			t.Fatalf("%+v", st)
		}
		s.set(func() { fail = false })
		time.Sleep(10 * time.Second)
		s.inForce(t)
		if _, counts := l.Core.Status(); counts.Failures != 4 || counts.Missed != 0 { // after 0, 1, 3 and 7 s
			t.Errorf("%+v", counts)
		}
	}, newStandIn("docker"))
}

type failing struct {
	*standIn
	fail *bool
}

func (f failing) Put(ctx context.Context, key string) error {
	f.mu.Lock()
	fails := *f.fail
	f.mu.Unlock()
	if fails {
		return errors.New("disk is gone")
	}
	return f.standIn.Put(ctx, key)
}

// Any number of events costs a bounded number of looks.
func TestManyEvents(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		for i := range 20_000 {
			s.set(func() { s.now[fmt.Sprint(i)] = 0 })
			l.Changed("docker", fmt.Sprint(i))
		}
		s.inForce(t)
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := len(l.sources["docker"].names); n != 0 {
			t.Errorf("%d names wait", n)
		}
	}, newStandIn("docker"))
}
