package why

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/kernel"
)

// TestThresholdAsMeasured: what the kernel computes is a whole number of MiB only by chance, and is
// written as any other such number; what was set is written as it was set.
func TestThresholdAsMeasured(t *testing.T) {
	for _, c := range []struct {
		dirty kernel.Dirty
		want  string
	}{
		{kernel.Dirty{Ratio: 20, LimitAt: 150 << 20}, "up to 157 MB can"},
		{kernel.Dirty{Ratio: 20, LimitAt: 150<<20 + 4096}, "up to 157 MB can"},
		{kernel.Dirty{Bytes: 150 << 20, LimitAt: 150 << 20}, "up to 150 MiB can"},
	} {
		f := good()
		f.Dirty = &c.dirty
		if found, ok := Judge(f).Find("writer-runs-ahead"); !ok || !strings.Contains(found.Text, c.want) {
			t.Errorf("%+v: %q, want %q", c.dirty, found.Text, c.want)
		}
	}
}
