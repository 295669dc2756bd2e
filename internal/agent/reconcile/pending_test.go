package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// looked is how often everything that a source is told of was looked at.
func (s *standIn) looked() (looks, reads int) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks, s.reads
}

// What weir itself writes is told as any other write. Nothing is looked at for it, however many groups that are.
func TestRulesAsTheyAreToBeAreNotLookedAt(t *testing.T) {
	var names []string
	for i := range 3 * namesMost {
		names = append(names, fmt.Sprint(i))
	}
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.inForce(t)
		looks, _ := s.looked()
		for _, n := range names {
			l.Written("docker", n, "/docker/"+n)
			l.Written("docker", n, "/docker/"+n) // its other file
		}
		if now, reads := s.looked(); now != looks || reads == 0 || reads > 2*len(names) {
			t.Errorf("%d looks, %d reads of %d groups", now-looks, reads, len(names))
		}
		s.set(func() { s.now["7"] = 3 })
		l.Written("docker", "7", "/docker/7")
		s.inForce(t)
		if now, _ := s.looked(); now != looks+1 {
			t.Errorf("%d looks for a foreign write", now-looks)
		}
		if _, counts := l.Core.Status(); counts.Drifts != 1 || counts.Repaired != 1 || counts.Missed != 0 {
			t.Errorf("%+v", counts)
		}
		// Of what nobody knows, or cannot read, a look tells.
		l.Written("docker", "new", "/docker/new")
		l.Written("docker", "", "/docker")
		s.looked()
		s.set(func() { s.broken = errors.New("gone") })
		l.Written("docker", "7", "/docker/7")
		if now, _ := s.looked(); now < looks+3 {
			t.Errorf("%d looks", now-looks)
		}
	}, newStandIn("docker", names...))
}

// Where writes may have been lost, the rules of all that is in force are read. Nothing is looked at but what has other ones.
func TestLostWritesAreLookedFor(t *testing.T) {
	var names []string
	for i := range 3 * namesMost {
		names = append(names, fmt.Sprint(i))
	}
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.inForce(t)
		looks, before := s.looked()
		l.Lost()
		if now, reads := s.looked(); now != looks || reads-before != len(names) {
			t.Errorf("%d looks, %d reads of %d groups", now-looks, reads-before, len(names))
		}
		s.set(func() { s.now["7"] = 3 })
		l.Lost()
		s.inForce(t)
		if now, _ := s.looked(); now != looks+1 {
			t.Errorf("%d looks for a write that was lost", now-looks)
		}
		if _, counts := l.Core.Status(); counts.Drifts != 1 || counts.Repaired != 1 {
			t.Errorf("%+v", counts)
		}
	}, newStandIn("docker", names...))
}

// A pod is looked at by its UID. Groups whose limits are not in force are looked at anyway.
func TestLimitedGroups(t *testing.T) {
	lab.Unit(t)
	c := NewCore("pod", "unit")
	rates := func(now uint64) []Rates {
		return []Rates{{Device: blkdev.Number{Major: 8}, Now: rate(now), Want: rate(10)}}
	}
	for _, one := range []Target{{Key: "pod:shop/web", ID: "5f0e", Group: "/pod", Plan: "small", Rates: rates(10)}, {Key: "unit:a.service", Group: "/a", Plan: "small", Rates: rates(10)},
		{Key: "unit:b.service", Group: "/b", Plan: "small", Rates: rates(3)}, {Key: "unit:c.service", Group: "/c", Plan: NoPlan, Rates: rates(10)}} {
		c.Decide(time.Now(), one)
	}
	got := c.limited()
	slices.SortFunc(got, func(a, b limited) int { return strings.Compare(a.group, b.group) })
	if want := []limited{{"unit", "a.service", "/a"}, {"pod", "5f0e", "/pod"}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What is in no hurry is looked at at once after a rest, and else together. What is in a hurry does not wait for it, and has the
// rest looked at too.
func TestWhatIsInNoHurryIsGathered(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.inForce(t)
		before, _ := s.looked()
		looks := func(what string, want int) {
			t.Helper()
			if now, _ := s.looked(); now-before != want {
				t.Errorf("%s: %d looks, want %d", what, now-before, want)
			}
		}
		time.Sleep(gatherTime)
		l.Soon("docker", "a")
		looks("after a rest", 1)
		for i := range 5 {
			time.Sleep(gatherTime / 10)
			l.Soon("docker", "b")
			l.Written("docker", fmt.Sprint("new", i), fmt.Sprint("/docker/new", i)) // nobody knows it
		}
		looks("meanwhile", 1)
		time.Sleep(gatherTime / 2)
		looks("then", 2)
		time.Sleep(gatherTime / 10)
		l.Soon("docker", "b")
		looks("again", 2)
		s.set(func() { s.now["a"] = 3 })
		l.Changed("docker", "a")
		looks("a change", 3)
		s.inForce(t)
		s.set(func() { s.now["a"] = 3 })
		l.Soon("docker", "b")
		l.Written("docker", "a", "/docker/a")
		looks("a limit that is lost", 4)
		s.inForce(t)
		time.Sleep(2 * gatherTime)
		looks("nothing is left", 4)
		// What fails is tried again as it would be without.
		s.set(func() { s.broken = errors.New("gone") })
		l.Soon("docker", "b")
		time.Sleep(30 * time.Second)
		at := 0
		for wait := reconnectLeast; wait < 30*time.Second; wait *= 2 {
			at++
		}
		if now, _ := s.looked(); now-before-5 > at {
			t.Errorf("%d looks within 30 s that fail, want at most %d", now-before-4, at+1)
		}
	}, newStandIn("docker", "a", "b"))
}

// The first look comes when events come, and is the only one: they tell of all that was there before.
func TestTheFirstLookIsTheOnlyOne(t *testing.T) {
	lab.Unit(t)
	for _, c := range []struct {
		name       string
		tree, late time.Duration
		hangs      bool
		at         time.Duration // of the first look
	}{
		{"at once", 0, 0, false, 0},
		{"the tree is late", 50 * time.Millisecond, 0, false, 50 * time.Millisecond},
		{"the engine is late", 0, 70 * time.Millisecond, false, 70 * time.Millisecond},
		{"the engine hangs", 0, time.Hour, false, awaitMost},
		{"the tree hangs", time.Hour, 0, false, awaitMost},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStandIn("docker", "web", "db")
			s.late = c.late
			l := NewLoop(NewCore(), slog.New(slog.DiscardHandler), s)
			begun := make(chan struct{})
			l.Begun = begun
			ctx, stop := context.WithCancel(t.Context())
			done, began := make(chan bool), time.Now()
			go func() { l.Run(ctx); close(done) }()
			go func() {
				select {
				case <-time.After(c.tree):
					l.Changed("", "")
					l.Changed("", "") // of another hierarchy
					close(begun)
				case <-ctx.Done():
				}
			}()
			<-l.Looked()
			if took := time.Since(began); took != c.at {
				t.Errorf("%s: after %v, want %v", c.name, took, c.at)
			}
			time.Sleep(10 * time.Second)
			if looks, _ := s.looked(); looks != 1 || len(s.puts) != 2 {
				t.Errorf("%s: %d looks, %d changes of 2 targets", c.name, looks, len(s.puts))
			}
			stop()
			<-done
		})
	}
}

// What is told of, however often, puts off neither what is to be tried again nor the comparison of everything.
func TestEventsPutOffNothing(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s, fail := of("docker"), true
		s.inForce(t)
		l.sources["docker"].Source = failing{s, &fail}
		s.set(func() { s.now["new"] = 0 })
		s.changed("new")
		synctest.Wait()
		fail = false
		s.set(func() { s.slow = gatherTime })
		before := s.wholes
		for began := time.Now(); time.Since(began) < ResyncTime+time.Second; time.Sleep(gatherTime / 5) {
			l.Soon("docker", "web")
			if time.Since(began) > 3*time.Second {
				s.inForce(t)
			}
		}
		if s.looked(); s.wholes != before+1 {
			t.Errorf("everything was compared %d times", s.wholes-before)
		}
	}, newStandIn("docker", "web"))
}

// What is tried again is looked at alone, and not beside thousands of others.
func TestARetryLooksAtItsTarget(t *testing.T) {
	for kind, whole := range map[string]bool{"docker": false, "pod": true} {
		run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
			s, fail := of(kind), true
			s.inForce(t)
			l.sources[kind].Source = failing{s, &fail}
			s.set(func() { s.now["new"] = 0 })
			s.changed("new")
			looks, _ := s.looked()
			before := s.wholes
			time.Sleep(10 * time.Second)
			if now, _ := s.looked(); now != looks+3 || s.wholes > before && !whole { // after 1, 3 and 7 s
				t.Errorf("%s: %d looks, %d of them at everything", kind, now-looks, s.wholes-before)
			}
			s.set(func() { fail = false })
			time.Sleep(10 * time.Second)
			s.inForce(t)
			if _, counts := l.Core.Status(); counts.Missed != 0 || counts.Failures != 4 {
				t.Errorf("%s: %+v", kind, counts)
			}
			// What has no plan any more is found among the records, by a look at all.
			fail, before = true, s.wholes
			l.Core.Decide(time.Now(), Target{Key: kind + ":new", Name: "new", Plan: NoPlan, Rates: []Rates{{Now: rate(1), Want: rate(0)}}})
			l.Core.Done(time.Now(), kind+":new", errors.New("disk is gone"))
			s.changed("web")
			time.Sleep(2 * time.Second)
			if s.looked(); s.wholes == before {
				t.Errorf("%s: a target without a plan is looked for alone", kind)
			}
		}, newStandIn(kind, "web"))
	}
}

// A container is forgotten by its id, or the beginning of it, and no other is.
func TestWhoIsForgotten(t *testing.T) {
	lab.Unit(t)
	one, two := strings.Repeat("a", idLeast)+strings.Repeat("b", idWhole-idLeast), strings.Repeat("a", idLeast)+strings.Repeat("c", idWhole-idLeast)
	for name, want := range map[string][]string{
		one:                            {"docker:" + two, "docker:web", "podman:" + one},
		one[:idLeast]:                  {"docker:web", "podman:" + one},
		one[:idLeast+1]:                {"docker:" + two, "docker:web", "podman:" + one},
		one[:idLeast-1]:                {"docker:" + one, "docker:" + two, "docker:web", "podman:" + one},
		"web":                          {"docker:" + one, "docker:" + two, "podman:" + one},
		"we":                           {"docker:" + one, "docker:" + two, "docker:web", "podman:" + one},
		one[:idLeast] + "d":            {"docker:" + one, "docker:" + two, "docker:web", "podman:" + one},
		strings.Repeat("a", idLeast*2): {"docker:" + one, "docker:" + two, "docker:web", "podman:" + one},
	} {
		c := NewCore()
		for _, key := range []string{"docker:" + one, "docker:" + two, "docker:web", "podman:" + one} {
			its := web(0, 1)
			its.Key, its.Name, its.Group = key, key, "/"+key
			c.Decide(begin, its)
			c.Done(begin, key, errors.New("disk is gone")) // it is tried again
		}
		c.Ended("docker", name)
		var left []string
		all, _ := c.Status()
		for _, s := range all {
			left = append(left, s.Key)
		}
		if !slices.Equal(left, want) || len(c.waiting) != len(want) || len(c.groups) != len(want) {
			t.Errorf("%s: %v, want %v; %d wait, %d groups", name, left, want, len(c.waiting), len(c.groups))
		}
		c.Keep("docker", nil, nil)
		if c.Keep("podman", nil, nil); len(c.targets)+len(c.waiting)+len(c.groups) != 0 || !c.Due("docker").IsZero() {
			t.Errorf("%s: %+v is left", name, c)
		}
	}
}
