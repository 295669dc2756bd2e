package lab

import (
	"slices"
	"testing"
	"time"
)

func TestRequests(t *testing.T) {
	const mb = 1_000_000
	at := func(ms int, bytes int64) arrival { return arrival{time.Duration(ms) * time.Millisecond, bytes} }
	for name, c := range map[string]struct{ all, want []arrival }{
		"nothing":         {[]arrival{at(0, 5)}, nil},
		"one piece each":  {[]arrival{at(0, 0), at(800, 8*mb), at(1600, 16*mb)}, []arrival{at(800, 8*mb), at(1600, 16*mb)}},
		"pieces":          {[]arrival{at(0, 0), at(800, mb), at(850, 5*mb), at(950, 8*mb), at(1600, 16*mb)}, []arrival{at(800, 8*mb), at(1600, 16*mb)}},
		"a journal's own": {[]arrival{at(0, 0), at(800, 8*mb), at(1200, 8*mb+4096), at(1600, 16*mb)}, []arrival{at(800, 8*mb), at(1600, 16*mb)}},
		"an even flow": {
			[]arrival{at(0, 0), at(100, mb), at(200, 2*mb), at(300, 3*mb), at(400, 4*mb), at(500, 5*mb), at(600, 6*mb), at(700, 7*mb), at(800, 8*mb), at(900, 9*mb), at(1000, 10*mb), at(1101, 11*mb)},
			[]arrival{at(100, mb), at(200, 2*mb), at(300, 3*mb), at(400, 4*mb), at(500, 5*mb), at(600, 6*mb), at(700, 7*mb), at(800, 8*mb), at(900, 9*mb), at(1000, 10*mb), at(1101, 11*mb)},
		},
	} {
		if got := requests(c.all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
