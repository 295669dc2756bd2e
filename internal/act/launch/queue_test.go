package launch

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
)

// What a throttle has is what it was given, less what its rate, and a little more, has let go.
func TestQueueDrains(t *testing.T) {
	rate, err := limit.ParseBytes("1MB/s")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before time.Duration
		more   uint64
		rate   limit.Rate
		passed time.Duration
		want   time.Duration
	}{
		{0, 2_000_000, rate, 0, 2 * time.Second},
		{time.Second, 1_000_000, rate, time.Second, 970 * time.Millisecond},
		{time.Second, 0, rate, time.Second, 0},
		{time.Second, 1_000_000, limit.Unlimited, 0, 0},
	} {
		if got := drained(c.before, c.more, c.rate, c.passed); got != c.want {
			t.Errorf("%v, and %d bytes in %v: %v, want %v", c.before, c.more, c.passed, got, c.want)
		}
	}
}
