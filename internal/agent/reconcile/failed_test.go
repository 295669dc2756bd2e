package reconcile

import (
	"errors"
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
