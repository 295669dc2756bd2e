package lab

import (
	"testing"
	"time"
)

func TestTooBusy(t *testing.T) {
	for _, c := range []struct {
		reason  string
		starved float64
		stalled time.Duration
		want    bool
	}{
		{"busy", 0, 0, true},
		{"slow", 0, 0, false},
		{"slow", 0.1, 0, true},
		{"too-much", 0.1, 0, false},
		{"too-much", 0.1, time.Second, true},
		{"escaped", 0.1, time.Second, false},
		{"", 0.1, time.Second, false},
	} {
		if got := tooBusy([]byte(`{"rows": [{"reason": "`+c.reason+`"}]}`), c.starved, c.stalled); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
