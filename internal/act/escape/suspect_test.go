package escape

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// Only a file that is older, on the disk and written through the page cache speaks for an
// escape, and one that the counters err about speaks against any.
func TestOpen(t *testing.T) {
	disk, other := blkdev.Number{Major: 8}, blkdev.Number{Major: 8, Minor: 16}
	began := time.Now()
	older, fresh := began.Add(-time.Second), began.Add(time.Second)
	for name, c := range map[string]struct {
		files           []Writable
		older, doubtful bool
	}{
		"nothing":           {},
		"its own":           {[]Writable{{Device: disk, Born: fresh}}, false, false},
		"an older one":      {[]Writable{{Device: disk, Born: fresh}, {Device: disk, Born: older}}, true, false},
		"of unknown age":    {[]Writable{{Device: disk}}, true, false},
		"direct too":        {[]Writable{{Device: disk, Born: older}, {Device: disk, Born: fresh, Direct: true}}, true, true},
		"another disk's":    {[]Writable{{Device: other, Born: older}}, false, true},
		"one on each, both": {[]Writable{{Device: disk, Born: older}, {Device: other, Born: fresh}}, true, true},
	} {
		m := &Meter{suspects: suspects{began: began, on: map[blkdev.Number]bool{disk: true, other: false}}}
		if older, doubtful := m.open(c.files); older != c.older || doubtful != c.doubtful {
			t.Errorf("%s: %t, %t; want %t, %t", name, older, doubtful, c.older, c.doubtful)
		}
	}
}
