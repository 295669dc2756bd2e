package systemd

import (
	"math"
	"testing"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/limit"
)

// FuzzProperties: whoever makes a unit chooses its paths and rates. Each path is there
// once, and a unit's object is one that systemd has.
func FuzzProperties(f *testing.F) {
	f.Add("nginx.service", "/dev/sda", uint64(5), "/dev/block/8:0", uint64(math.MaxUint64))
	f.Add("", "", uint64(0), "", uint64(1))
	f.Add("a\n-\xff.scope", "8:0", uint64(1), "8:0", uint64(2))
	devices := blkdev.New(f.TempDir())
	f.Fuzz(func(t *testing.T, unit, one string, rate uint64, other string, another uint64) {
		if object := objectOf(unit); !object.IsValid() && unit != "" {
			t.Errorf("%q has the object %q", unit, object)
		}
		_ = interfaceOf(unit) // must end
		rates := []deviceRate{{one, rate}, {other, another}}
		all := addRates(nil, limit.WBPS, rates)
		if want := map[bool]int{true: 1, false: 2}[one == other]; len(all) != want {
			t.Errorf("%q and %q: %d", one, other, len(all))
		}
		for _, l := range all {
			if n, bound := l.Limit.WBPS.Number(); bound && (n == 0 || n == math.MaxUint64) {
				t.Errorf("%q: %d", l.Path, n)
			}
			_ = devicesOf(t.Context(), devices, l.Path) // must end
		}
	})
}
