package systemd

import (
	"math"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// FuzzProperties: whoever makes a unit chooses its paths and rates. Each path is there
// once, and a unit's object is one that systemd has.
func FuzzProperties(f *testing.F) {
	f.Add("nginx.service", "/dev/sda", uint64(5), "/dev/block/8:0", uint64(math.MaxUint64))
	f.Add("", "", uint64(0), "", uint64(1))
	f.Add("a\n-\xff.scope", "8:0", uint64(1), "8:0", uint64(2))
	devices := blkdev.New(f.TempDir())
	f.Fuzz(func(t *testing.T, unit, one string, rate uint64, other string, another uint64) {
		if object := ObjectOf(unit); !object.IsValid() && unit != "" {
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

// FuzzDropIn: weir takes lines out of drop-ins that systemd, or an administrator, wrote. All other
// lines stay as they are, in their order.
func FuzzDropIn(f *testing.F) {
	f.Add("# By systemd.\n[Service]\nIOWriteBandwidthMax=\nIOWriteBandwidthMax=/dev/sda 5M\nIOWriteBandwidthMax=/dev/sdb 7M\n", "/dev/sda")
	f.Add("IOWriteBandwidthMax = \"/a b\" 5\n \\\nIOWriteBandwidthMax=%h 1", "")
	f.Fuzz(func(t *testing.T, text, path string) {
		after, changed := without(text, limit.WBPS, []string{path})
		left := strings.SplitAfter(after, "\n")
		for line := range strings.Lines(text) {
			if len(left) > 0 && left[0] == line {
				left = left[1:]
			} else if key, its := ratePath(line); key != "IOWriteBandwidthMax" || its != path && !strings.Contains(line, path+" ") || !changed {
				t.Fatalf("%q without %q is %q", text, path, after)
			}
		}
		if strings.Join(left, "") != "" || changed == (after == text) {
			t.Errorf("%q without %q is %q", text, path, after)
		}
		all := []PathLimit{{Path: path}}
		markOwn(text, all)
		if setsIn(text, limit.WBPS) && !strings.Contains(text, "IOWriteBandwidthMax") {
			t.Errorf("%q sets it", text)
		}
	})
}
