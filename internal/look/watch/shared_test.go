package watch

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
)

// What is expected of the limits of many groups is kept once where it is the same, whoever answers.
func TestExpectationsAreShared(t *testing.T) {
	files := map[string]string{}
	for i := range 40 {
		g := fmt.Sprintf("g%02d/", i)
		files[g+"io.stat"], files[g+"io.max"] = "", fmt.Sprintf("8:0 rbps=max wbps=%d riops=max wiops=max\n", 1000+i%2)
	}
	w := watching(t, cgroupfs.V2, v2(files))
	w.o.Describe = func(_ context.Context, groups []Limited) (all []Known, err error) {
		for _, g := range groups {
			one := place.Expected{Placed: place.Placed{Device: blkdev.Device{Number: sda}, Limit: g.Usages[0].Limit}}
			one.Direct = place.By{Mechanism: place.Throttle}
			all = append(all, Known{Expected: []*place.Expected{&one}})
		}
		return all, nil
	}
	w.start()
	kept := map[*place.Expected]limit.Limit{}
	for _, g := range w.sample(0).Groups {
		d := g.Devices[0]
		kept[d.Expected] = d.Limit
		if d.Expected.Limit != d.Limit {
			t.Errorf("%s has %v, and %v is expected", g.Path, d.Limit, d.Expected.Limit)
		}
	}
	if len(kept) != 2 {
		t.Errorf("%d are kept, of limits of two kinds", len(kept))
	}
}
