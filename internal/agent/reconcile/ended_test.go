package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// A target that ends while its limits are set is no failure, and is forgotten.
func TestATargetThatEndsMeanwhile(t *testing.T) {
	run(t, func(t *testing.T, l *Loop, of func(string) *standIn) {
		s := of("docker")
		s.set(func() { s.now["web"] = 0 })
		for _, c := range []struct {
			err      error
			known    int
			failures uint64
		}{
			{fmt.Errorf("set docker:web: %w", ErrEnded), 0, 0},
			{errors.New("disk is gone"), 1, 1},
		} {
			l.sources["docker"].Source = unable{s, c.err}
			s.changed("web")
			synctest.Wait()
			if all, counts := l.Core.Status(); len(all) != c.known || counts.Failures != c.failures {
				t.Errorf("%v: %+v, %+v", c.err, all, counts)
			}
		}
	}, newStandIn("docker"))
}

// unable puts no plan into force.
type unable struct {
	*standIn
	err error
}

func (u unable) Put(context.Context, string) error { return u.err }
