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
