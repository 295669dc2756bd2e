package pacer

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
)

// A database writes its log, which is its own, and then its pages, which are another group's. The
// kernel's throttle saves up during each pause. Both together get the limit all the same.
func TestOwnAndEscapedInTurn(t *testing.T) {
	const rate, step, piece, saved = 10e6, time.Millisecond, 4e6, 180 * time.Millisecond
	p := paced{bucket: newBucket(rate, 0), meter: &escaped{owed: escape.NewOwed(rate, rate/10, 0)}}
	m := p.meter.(*escaped)
	var wrote, left, credit float64 // left is of the log
	stopped, charged := false, 0.0
	const end = 60 * time.Second
	for now := step; now < end; now += step {
		credit = min(credit+rate*step.Seconds(), rate*saved.Seconds())
		past := 0.0
		switch {
		case stopped: // and it is not looked at
			if p.bucket.until(0) > 0 {
				p.bucket.fill(now)
				continue
			}
			stopped = false
			continue
		case left > 0:
			out := min(left, credit)
			left, credit, charged = left-out, credit-out, out
			wrote += out
		default:
			past, left, charged = piece, piece, 0
			wrote += piece
		}
		owed, taken := m.owed.Take(past, charged, now, func() bool { return true })
		m.taken = taken
		p.bucket.fill(now)
		p.bucket.take(owed)
		p.share()
		stopped = p.bucket.level < 0
	}
	if got := wrote / rate / end.Seconds(); got < 0.95 || got > 1.05 {
		t.Errorf("it got %.3f of its limit", got)
	}
}
