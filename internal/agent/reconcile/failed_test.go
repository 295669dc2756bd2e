package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What a look that failed was about is looked at by the next one, whatever that one is asked for.
func TestAFailedLookIsMadeGood(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.set(func() { s.now["web"], s.broken = 0, errors.New("busy") })
		s.changed("web")
		synctest.Wait()
		s.set(func() { s.now["db"], s.broken = 0, nil })
		s.changed("db")
		time.Sleep(2 * reconnectLeast)
		s.inForce(t)
		if _, counts := l.Core.Status(); counts.Missed != 0 {
			t.Errorf("%+v: an event told of both", counts)
		}
	}, newStandIn("docker"))
}

// What is wrong beside the targets, as a damaged record, is told. It leads to no more looks, and what has
// ended is forgotten.
func TestWhatIsWrongBesideTargets(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.set(func() { s.looks, s.beside = 0, fmt.Errorf("%w: damaged", ErrBeside); delete(s.now, "web") })
		s.changed("web")
		time.Sleep(ResyncTime / 2)
		synctest.Wait()
		s.set(func() {
			if s.looks != 1 {
				t.Errorf("%d looks", s.looks)
			}
		})
		if all, _ := l.Core.Status(); len(all) != 1 {
			t.Errorf("%+v", all)
		}
		if how := l.Sources(); len(how) != 1 || how[0].LookError != "beside the targets: damaged" {
			t.Errorf("%+v", how)
		}
	}, newStandIn("docker", "web", "db"))
}

// What is beside the targets is told once, however many looks at a few of them find the others in order, until a look at all
// finds it no more.
func TestWhatIsBesideIsToldOnce(t *testing.T) {
	var log bytes.Buffer
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		l.Log = slog.New(slog.NewTextHandler(&log, nil))
		look := func(name string, beside error, want string, told int) {
			t.Helper()
			s.set(func() { s.beside = beside })
			s.changed(name)
			synctest.Wait()
			how, n := l.Sources()[0].LookError, strings.Count(log.String(), "beside the targets")
			if how != want || n != told {
				t.Errorf("a look at %q: %q, and told %d times; want %q, %d", name, how, n, want, told)
			}
		}
		damaged, both := fmt.Errorf("%w: damaged", ErrBeside), fmt.Errorf("%w: both", ErrBeside)
		look("", both, both.Error(), 1)
		look("web", nil, both.Error(), 1)
		look("db", damaged, both.Error(), 1)
		look("", both, both.Error(), 1)
		look("", damaged, damaged.Error(), 2)
		look("", nil, "", 2)
		look("web", damaged, damaged.Error(), 3)
	}, newStandIn("docker", "web", "db"))
}

// A target that a look did not find has ended, and is forgotten; a look that failed tells nothing.
func TestWhatIsNotFoundIsForgotten(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		known := func(want int) {
			t.Helper()
			if all, _ := l.Core.Status(); len(all) != want {
				t.Errorf("%+v, want %d", all, want)
			}
		}
		s := of("docker")
		known(3)
		s.changed("web") // it is there
		synctest.Wait()
		known(3)
		s.set(func() { delete(s.now, "web"); s.broken = errors.New("busy") })
		s.changed("web")
		synctest.Wait()
		known(3)
		s.set(func() { s.broken = nil })
		time.Sleep(2 * reconnectLeast)
		known(2)
		s.set(func() { delete(s.now, "db") })
		s.changed("db")
		synctest.Wait()
		known(1)
	}, newStandIn("docker", "web", "db"), newStandIn("unit", "db"))
}

// A source that hangs within its bounds is not stuck, however often; one that does not come back is.
func TestStuck(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("unit")
		s.set(func() { s.hangs = true })
		s.changed("")
		for range 100 {
			time.Sleep(LookMost / 10)
			if kind := l.Stuck(); kind != "" {
				t.Fatalf("%s is stuck", kind)
			}
		}
		s.set(func() { s.hangs, s.now["a"] = false, 5 })
		time.Sleep(ResyncTime)
		s.inForce(t)
		stuck := make(chan bool)
		s.set(func() { s.now["a"], s.stuck = 5, stuck })
		s.changed("a")
		time.Sleep(stuckTime - time.Second)
		if kind := l.Stuck(); kind != "" {
			t.Errorf("%s is stuck", kind)
		}
		time.Sleep(2 * time.Second)
		if kind := l.Stuck(); kind != "unit" {
			t.Errorf("%q is stuck", kind)
		}
		close(stuck)
		synctest.Wait()
		if kind := l.Stuck(); kind != "" {
			t.Errorf("%s is stuck", kind)
		}
	}, newStandIn("docker", "web"), newStandIn("unit", "a"))
}

// What is due while its source is broken waits, and costs no more looks than the source alone.
func TestWhatIsDueWaitsForItsSource(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		fail := true
		l.sources["docker"].Source = failing{s, &fail}
		s.set(func() { s.now["web"] = 0 })
		s.changed("web")
		synctest.Wait() // it is to be tried again in a second
		s.set(func() { s.broken, s.looks = errors.New("gone"), 0 })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		s.set(func() {
			if s.looks == 0 || s.looks > 25 {
				t.Errorf("%d looks in ten minutes", s.looks)
			}
			s.broken, fail = nil, false
		})
		time.Sleep(2 * reconnectMost)
		s.inForce(t)
	}, newStandIn("docker"))
}
