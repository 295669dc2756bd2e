package latency

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/load"
)

func TestCheckRoom(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct{ size, free, fits uint64 }{
		{gib, gib + 64*mib - 1, gib - mib}, // whole MiB below a GiB
		{4 * gib, 3*gib + 64*mib, 3 * gib},
		{4 * gib, 3*gib + 63*mib, 2 * gib}, // whole GiB from there on
		{gib, 64 * mib, 0},
		{gib, 0, 0},
	} {
		var full *NoRoomError
		err := checkRoom("/d", c.size, c.free)
		if !errors.As(err, &full) || full.Fits != c.fits || fault.ClassOf(err) != fault.NotPossible {
			t.Errorf("%d of %d free: %+v, want %d to fit", c.size, c.free, full, c.fits)
		}
		if full != nil && full.Fits > 0 && checkRoom("/d", full.Fits, c.free) != nil {
			t.Errorf("%d of %d free: it does not fit", full.Fits, c.free)
		}
	}
	if err := checkRoom("/d", gib, gib+64*mib); err != nil {
		t.Error(err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	var none *load.NoDirError
	if _, err := Prepare(context.Background(), h, Request{Dir: "/dev/null", Size: Block, Memory: MemoryMin}); !errors.As(err, &none) || none.Dir != "/dev/null" {
		t.Errorf("a file instead of a directory: %v", err)
	}
}
