package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/lab"
)

// What no event tells of is found within ResyncTime, and counted.
func TestResyncCountsWhatWasMissed(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.set(func() { s.now["silent"] = 0; s.now["web"] = 1 })
		time.Sleep(ResyncTime + time.Second)
		s.inForce(t)
		_, counts := l.Core.Status()
		if counts.Missed != 2 || counts.Drifts != 1 {
			t.Errorf("%+v", counts)
		}
		// Where nothing is missed the time doubles, up to ResyncMost. What is missed, a stream that ends and an
		// event about everything begin it anew.
		looks := func() (n int) {
			synctest.Wait()
			s.set(func() { n = s.looks })
			return n
		}
		before := looks()
		for _, wait := range []time.Duration{ResyncTime, 2 * ResyncTime, 4 * ResyncTime, ResyncMost, ResyncMost} {
			time.Sleep(wait - 2*time.Second)
			if n := looks(); n != before {
				t.Errorf("%d looks before %v", n-before, wait)
			}
			time.Sleep(2 * time.Second)
			if n := looks(); n != before+1 {
				t.Errorf("%d looks within %v", n-before, wait)
			}
			before = looks()
		}
		after := func(what string, wait time.Duration) {
			time.Sleep(wait)
			if n := looks(); n != before+1 {
				t.Errorf("%s: %d looks within %v", what, n-before, wait)
			}
			before = looks()
		}
		s.set(func() { s.now["web"] = 2 })
		after("missed", ResyncMost)
		after("missed", ResyncTime+time.Second)
		s.changed("")
		before = looks()
		after("an event", ResyncTime+time.Second)
		s.set(func() { s.deaf = errors.New("no events") })
		s.dead <- errors.New("it has ended")
		after("silent", 2*ResyncTime)
		after("silent", ResyncTime)
		after("silent", ResyncTime)
	}, newStandIn("docker", "web"))
}

// Where nobody is told of changes, comparisons do not become rarer, though they find nothing.
func TestComparisonsDoNotBecomeRarerInSilence(t *testing.T) {
	lab.Unit(t)
	for silent, want := range map[bool]int{false: 5, true: 24} {
		synctest.Test(t, func(t *testing.T) {
			s := newStandIn("docker", "web")
			l := NewLoop(NewCore(), slog.New(slog.DiscardHandler), s)
			l.Silent = func() bool { return silent }
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan bool)
			go func() { l.Run(ctx); close(done) }()
			time.Sleep(time.Minute)
			before, _ := s.looked()
			time.Sleep(2 * time.Hour)
			if n, _ := s.looked(); n-before != want {
				t.Errorf("silent %v: %d comparisons within two hours, want %d", silent, n-before, want)
			}
			stop()
			<-done
		})
	}
}

// What a comparison finds is set at once, however much it is: an event that may be on its way is waited for once.
func TestResyncSetsManyAtOnce(t *testing.T) {
	run(t, func(t *testing.T, _ *Loop, of func(string) *standIn) {
		s := of("docker")
		s.set(func() {
			s.puts = nil
			for i := range 200 {
				s.now[fmt.Sprint(i)] = 0
			}
		})
		time.Sleep(ResyncTime + time.Second)
		s.inForce(t)
		if took := s.puts[len(s.puts)-1].Sub(s.puts[0]); len(s.puts) != 200 || took > eventMost {
			t.Errorf("%d changes within %v", len(s.puts), took)
		}
	}, newStandIn("docker"))
}
