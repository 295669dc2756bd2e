package routes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/stream"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
)

// groupsOf makes snapshots of so many groups, of which the first one moves.
func groupsOf(n int) func(*watch.Snapshot) *watch.Snapshot {
	var all []*watch.Group
	for i := range n {
		all = append(all, &watch.Group{Path: fmt.Sprintf("/g%05d", i), Target: "docker:web", Devices: []watch.Device{{Node: "/dev/sda", Limit: limit.None.With(limit.WBPS, limit.PerSecond(10e6))}}})
	}
	moves := 0.0
	return func(*watch.Snapshot) *watch.Snapshot {
		s := &watch.Snapshot{At: time.Now(), Window: stream.Every, Version: cgroupfs.V2, Watched: n, Groups: append([]*watch.Group(nil), all...)}
		one := *s.Groups[0]
		moves++
		one.Devices = []watch.Device{one.Devices[0]}
		one.Devices[0].Rates = &watch.Rates{WBPS: moves}
		s.Groups[0] = &one
		return s
	}
}

// errNotTold is of one who follows and may not read by himself.
var errNotTold = errors.New("weird does not tell")

// follows has a Source of weir top follow.
func (s *served) follows() *stream.Source {
	s.t.Helper()
	source := stream.New(stream.Options{Socket: s.read, Every: time.Hour, Open: func() (stream.Own, error) { return nil, errNotTold }})
	s.t.Cleanup(func() {
		if err := source.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return source
}

func next(t *testing.T, s *stream.Source) stream.Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	v, err := s.Next(ctx)
	for errors.Is(err, errNotTold) && ctx.Err() == nil { // on a busy machine weird is late, and tells again
		time.Sleep(time.Millisecond)
		v, err = s.Next(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// weir top has what groups do, with their plans and what was measured, as it changes. All who follow have one
// reading.
func TestFollowGroups(t *testing.T) {
	f := newFake()
	var reads atomic.Int64
	make := groupsOf(2000)
	f.newer = func(seen *watch.Snapshot) *watch.Snapshot { reads.Add(1); return make(seen) }
	f.status.Targets[0].Group = "/g00007"
	f.status.Held["docker:1"] = agent.Held{Verdict: held.Verdict{State: held.NotHeld, Since: time.Unix(1e9, 0)}, Finding: agent.Finding{Code: "dax", Text: "because"}}
	f.status.Targets[1] = reconcile.Status{Key: "docker:2", Name: "docker:db", Group: "/g00008", Plan: reconcile.NoPlan}
	s := serve(t, f, nil)
	all := []*stream.Source{s.follows(), s.follows(), s.follows()}
	began := time.Now()
	last := 0.0
	for i := range 3 {
		for n, one := range all {
			v := next(t, one)
			if v.Source != (api.TopSource{From: api.FromWeird, Version: "1.2.3"}) || len(v.Snapshot.Groups) != 2000 || len(v.Plans) != 1 || v.Plans["/g00007"] != "small" || len(v.Told) != 1 {
				t.Fatalf("%+v: %d groups, plans %v, told %v", v.Source, len(v.Snapshot.Groups), v.Plans, v.Told)
			}
			if told := v.Told["/g00007"]; told.State != held.NotHeld || told.Code != "dax" || told.Why != "because" {
				t.Errorf("%+v", told)
			}
			if now := v.Snapshot.Groups[0].Devices[0].Rates.WBPS; n == 0 && now <= last {
				t.Errorf("reading %d: %v after %v", i, now, last)
			} else if n == 0 {
				last = now
			}
		}
	}
	if most := int64(time.Since(began)/stream.Every) + 2; reads.Load() > most {
		t.Errorf("%d readings for three who follow, at most %d", reads.Load(), most)
	}
	f.mu.Lock()
	f.status.Held = map[string]agent.Held{"docker:1": {Verdict: held.Verdict{State: held.Held}}}
	f.mu.Unlock()
	for v := next(t, all[0]); v.Told["/g00007"].State != held.Held; v = next(t, all[0]) {
		if time.Since(began) > patience {
			t.Fatal("a measurement that has changed is not told")
		}
	}
	if _, text := s.ask(s.read, "GET", "/top", ""); !strings.Contains(text, `"source":{"from":"weird","version":"1.2.3","why":""}`) {
		t.Errorf("%s", text)
	}
}

// The document of the socket has plans and measurements, too.
func TestTopHasPlans(t *testing.T) {
	f := newFake()
	f.status.Targets[0].Group = "/a"
	s := serve(t, f, nil)
	_, text := s.ask(s.read, "GET", "/top", "")
	var doc api.Top
	if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Groups) != 1 || doc.Groups[0].Plan == nil || *doc.Groups[0].Plan != "small" || doc.Groups[0].Held == nil || doc.Groups[0].Held.State != "held" {
		t.Errorf("%v: %s", err, text)
	}
}

// The first reading is about the time in which nobody followed: it is not told.
func TestTheFirstReadingIsNotTold(t *testing.T) {
	f := newFake()
	make := groupsOf(1)
	f.newer = func(seen *watch.Snapshot) *watch.Snapshot {
		s := make(seen)
		if seen == nil {
			s.Window = 2 * time.Minute
		}
		return s
	}
	s := serve(t, f, nil)
	if v := next(t, s.follows()); v.Snapshot.Window != stream.Every {
		t.Errorf("%v", v.Snapshot.Window)
	}
}

// If nothing can be read, that is told; afterwards all is told whole.
func TestTrouble(t *testing.T) {
	f := newFake()
	f.newer = groupsOf(3)
	f.broken = errors.New("the hierarchy is gone")
	a := newTopFeed(f, Options{Spell: func(err error) error { return err }})
	one := a.read(t.Context(), nil)
	if !strings.Contains(string(one.trouble), "the hierarchy is gone") {
		t.Errorf("%s", one.trouble)
	}
	a.send(one)
	if a.last != nil {
		t.Error("trouble is kept for who comes later")
	}
	s := serve(t, f, nil)
	source := s.follows()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := source.Next(ctx); err == nil || !strings.Contains(err.Error(), "does not tell") {
		t.Errorf("%v", err)
	}
	f.mu.Lock()
	f.broken = nil
	f.mu.Unlock()
	for {
		v, err := source.Next(ctx)
		if err == nil && len(v.Snapshot.Groups) == 3 {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// A follower that does not read is sent away, and delays neither the agent nor others; more than a few are
// refused.
func TestSlowFollowersOfGroups(t *testing.T) {
	f := newFake()
	f.newer = groupsOf(2000)
	s := serve(t, f, nil)
	slow, err := net.Dial("unix", s.read)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET /top/events HTTP/1.1\r\nHost: weird\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	quick := s.follows()
	for range 3 {
		if v := next(t, quick); len(v.Snapshot.Groups) != 2000 {
			t.Fatalf("%d groups", len(v.Snapshot.Groups))
		}
		began := time.Now()
		if status, _ := s.ask(s.read, "GET", "/health", ""); status != 200 || time.Since(began) > patience/4 {
			t.Errorf("%d after %v", status, time.Since(began))
		}
	}
	a := newTopFeed(f, Options{})
	first, _ := a.follow()
	for range framesMost + 1 {
		a.send(&frame{})
	}
	for range framesMost {
		<-first
	}
	if _, open := <-first; open {
		t.Error("a slow one is kept")
	}
	for range followersMost {
		if _, ok := a.follow(); !ok {
			t.Fatal("too few may follow")
		}
	}
	if _, ok := a.follow(); ok {
		t.Error("any number may follow")
	}
	a.end()
	if a.followed() || a.last != nil {
		t.Error("followers are left")
	}
}

// One who may only read can follow, nobody can write there, and a question that is none is refused.
func TestFollowIsForReading(t *testing.T) {
	s := serve(t, newFake(), nil)
	for _, c := range []struct {
		method, path string
		status       int
	}{{"POST", "/top/events", 405}, {"HEAD", "/top/events", 405}, {"GET", "/top/events?x=1", 400}, {"GET", "/top/event", 404}} {
		if status, text := s.ask(s.read, c.method, c.path, ""); status != c.status {
			t.Errorf("%v: %d %s", c, status, text)
		}
	}
	r, err := clientOf(s.read).Get("http://weird/top/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if line, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, ":") || r.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%q, %v, %v", line, err, r.Header)
	}
}

// BenchmarkFollow is what a second costs weird and weir top beside the reading itself, with 2,000 groups of plans.
func BenchmarkFollow(b *testing.B) {
	f := newFake()
	f.newer = groupsOf(2000)
	f.status.Targets = nil
	for i := range 2000 {
		key := fmt.Sprint("docker:", i)
		f.status.Targets = append(f.status.Targets, reconcile.Status{Key: key, Name: key, Group: fmt.Sprintf("/g%05d", i), Plan: "small", State: reconcile.InForce})
		f.status.Held[key] = agent.Held{Verdict: held.Verdict{State: held.Held}}
	}
	a := newTopFeed(f, Options{})
	before := a.read(b.Context(), nil)
	for b.Loop() {
		before = a.read(b.Context(), before)
	}
}
