package latency

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
)

func TestCheckRoom(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct {
		size, free uint64
		fits       string
	}{
		{gib, gib + 64*mib - 1, "1023MiB"}, // whole MiB below a GiB
		{4 * gib, 3*gib + 64*mib, "3GiB"},
		{4 * gib, 3*gib + 63*mib, "2GiB"}, // whole GiB from there on
		{gib, 64 * mib, ""},
		{gib, 0, ""},
	} {
		err := checkRoom("/d", c.size, c.free)
		if fault.ClassOf(err) != fault.NotPossible {
			t.Errorf("%d of %d free: %v", c.size, c.free, err)
		}
		var less *fault.Remedied
		if !errors.As(err, &less) {
			if c.fits != "" || !strings.HasSuffix(err.Error(), "; name another directory") {
				t.Errorf("%d of %d free: %v", c.size, c.free, err)
			}
			continue
		}
		if fits, parsed := limit.ParseSize(less.Remedy.Target); less.Remedy.Do != fault.WriteLess || parsed != nil || strings.ReplaceAll(less.Remedy.Target, " ", "") != c.fits || checkRoom("/d", fits, c.free) != nil {
			t.Errorf("%d of %d free: %+v, want %s to fit", c.size, c.free, less.Remedy, c.fits)
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
