package watch

import (
	"context"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A clock goes on while thousands of groups are read. What was read before it was asked who they are is no news about that.
func TestWhoRestsIsNotAskedForAgain(t *testing.T) {
	w := watching(t, cgroupfs.V2, v2(map[string]string{"a/io.stat": "8:0 rbytes=0 wbytes=10 rios=0 wios=1\n", "a/io.max": "8:0 rbps=max wbps=1000 riops=max wiops=20\n"}))
	asked := 0
	w.o.Now = func() time.Time {
		w.now = w.now.Add(time.Millisecond)
		return w.now
	}
	w.o.Describe = func(_ context.Context, groups []Limited) ([]Known, error) {
		asked++
		return make([]Known, len(groups)), nil
	}
	w.start()
	w.sample(0)
	for after := time.Duration(0); after < restedEvery-2*describeEvery; after += describeEvery {
		if w.sample(describeEvery); asked != 1 {
			t.Fatalf("asked %d times within %v", asked, after+describeEvery)
		}
	}
}
