package haste

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Others wait as long as somebody hurries, and no longer than they have to.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(g *Gate, ctx context.Context) time.Duration {
			began := time.Now()
			g.GiveWay(ctx)
			return time.Since(began)
		}
		var g Gate
		if took := took(&g, t.Context()); took != 0 {
			t.Errorf("at an open gate they wait %v", took)
		}
		done, second := g.Hurry(), g.Hurry()
		time.AfterFunc(3*time.Millisecond, done)
		time.AfterFunc(4*time.Millisecond, done) // a second time does nothing
		time.AfterFunc(7*time.Millisecond, second)
		if took := took(&g, t.Context()); took != 7*time.Millisecond {
			t.Errorf("they wait %v for two that hurry", took)
		}
		if took := took(&g, t.Context()); took != 0 {
			t.Errorf("after that they wait %v", took)
		}

		done = g.Hurry()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer cancel()
		if took := took(&g, ctx); took != 2*time.Millisecond {
			t.Errorf("with a context of 2 ms they wait %v", took)
		}
		if took := took(&g, t.Context()); took != waitMost-2*time.Millisecond {
			t.Errorf("for one that hangs they wait %v", took)
		}
		if took := took(&g, t.Context()); took != 0 {
			t.Errorf("and once more %v", took)
		}
		g.Hurry()()
		if took := took(&g, t.Context()); took != 0 {
			t.Errorf("somebody else who hurries beside it has them wait %v", took)
		}
		done()
		done = g.Hurry()
		defer done()
		if took := took(&g, t.Context()); took != waitMost {
			t.Errorf("for the next one they wait %v", took)
		}
		if took := took(nil, t.Context()); took != 0 {
			t.Errorf("without a gate they wait %v", took)
		}
	})
}
