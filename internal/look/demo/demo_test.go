package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
)

// A disk that did next to nothing has not shown that the limit holds it.
func TestJudge(t *testing.T) {
	const held, cannotTell, notHeld = "held", "cannot tell", "not held"
	for _, c := range []struct {
		asked  limit.Rate
		device float64
		want   string
		why    string
	}{
		{limit.PerSecond(10e6), 10e6, held, ""},
		{limit.PerSecond(10e6), 5e6, held, ""},
		{limit.PerSecond(10e6), 4.99e6, cannotTell, "the disk did only 4.99 MB/s in that time"},
		{limit.PerSecond(10e6), 0, cannotTell, "the disk did only 0 B/s in that time"},
		// 10 MB/s for 2.1 s, and 2 MiB, in 2 s.
		{limit.PerSecond(10e6), (21e6 + 2<<20) / 2, held, ""},
		{limit.PerSecond(10e6), (21e6+2<<20)/2 + 1, notHeld, "1.15 of the limit"},
		{limit.Unlimited, 1e6, notHeld, ""},
	} {
		r := judge(nil, Row{Path: load.Direct, Limit: c.asked, Device: c.device}, 2*time.Second)
		got := notHeld
		switch {
		case r.Held && r.CannotTell:
			got = "both"
		case r.Held:
			got = held
		case r.CannotTell:
			got = cannotTell
		}
		if got != c.want || !strings.Contains(r.Why, c.why) || c.why == "" && r.Why != "" {
			t.Errorf("%.0f bytes/s: %s (%s), want %s (%s)", c.device, got, r.Why, c.want, c.why)
		}
	}
}

// The last row, with the pacer, is there only where weir run would use it.
func TestRows(t *testing.T) {
	d := &Demo{Options: Options{Limit: limit.PerSecond(10e6)}}
	if n := len(d.rows(false)); n != 4 {
		t.Errorf("%d rows without the pacer", n)
	}
	rows := d.rows(true)
	last := rows[len(rows)-1]
	if len(rows) != 5 || last.Hold != limit.HoldPacer || last.Path != load.Buffered || last.Limit != d.Limit {
		t.Errorf("with the pacer: %+v", rows)
	}
}
