package volumeqos

import (
	"strings"
	"testing"
	"unicode"

	"github.com/weir-io/weir/internal/limit"
)

// FuzzParse: whatever others keep with a volume, its limit is made of rates that the kernel takes, no place raises
// what another one allows, and what is wrong is told in one short line.
func FuzzParse(f *testing.F) {
	f.Add(ceph, "maxReadIops", "500", "maxWriteBps", "10Mi")
	f.Add("local.csi.openebs.io", "qosBandwithPerSec", "max", "qosIopsLimit", "1e3")
	f.Add(linstor, "qos.linbit.com/device", "/dev/drbd1000", "qos.linbit.com/wbps", "0")
	f.Add("x.rbd.csi.ceph.com", "maxReadBps", "\x1b[2J", "maxReadBps", "1e64")
	f.Fuzz(func(t *testing.T, driver, name, value, other, more string) {
		one, two := texts{name: value}, texts{name: value, other: more}
		first, err := Parse(driver, one)
		both, errBoth := Parse(driver, one, Own(driver, two))
		for _, err := range []error{err, errBoth} {
			if err != nil && (len(err.Error()) > 500 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsGraphic(r) })) {
				t.Errorf("%q", err)
			}
		}
		for _, k := range limit.Keys {
			n, bound := first.Get(k).Number()
			if bound && (n == 0 || k.IsOps() && n > limit.MaxOpsPerSec || n > limit.MaxBytesPerSec) || err != nil && bound {
				t.Errorf("%v, %v", first, err)
			}
			if less, bounds := both.Get(k).Number(); err == nil && errBoth == nil && bound && (!bounds || less > n) {
				t.Errorf("%v became %v", first, both)
			}
		}
	})
}
