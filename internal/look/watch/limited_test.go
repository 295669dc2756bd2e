package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// host makes a v2 host; files are named below the hierarchy's root.
func host(t *testing.T, files map[string]string) cgrouptest.Host {
	t.Helper()
	all := map[string]string{}
	for name, text := range files {
		all[filepath.Join(cgrouptest.V2Dir, name)] = text
	}
	return cgrouptest.New(t, cgroupfs.V2, all)
}

func TestFind(t *testing.T) {
	h := host(t, map[string]string{
		"a/io.max":       "",
		"a/b/io.max":     "8:0 rbps=1 wbps=max riops=max wiops=max\n",
		"a/b/c/io.max":   "8:0 rbps=max wbps=max riops=max wiops=max\n",
		"d/io.max":       "8:16 rbps=max wbps=2 riops=max wiops=max\n",
		"e/cgroup.procs": "", // without the controller
	})
	found, _, err := Find(h.IO.Root())
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, l := range found {
		paths[l.Group.Path()] = true
	}
	if want := map[string]bool{"/a/b": true, "/d": true}; !reflect.DeepEqual(paths, want) {
		t.Errorf("Find = %v, want %v", paths, want)
	}
	if _, err := Of(h.IO.Root()); !fault.IsUnsupported(err) {
		t.Errorf("Of the root: %v", err)
	}
}

func TestRates(t *testing.T) {
	h := host(t, map[string]string{
		"x/io.max":  "8:0 rbps=1 wbps=max riops=max wiops=max\n8:16 rbps=2 wbps=max riops=max wiops=max\n",
		"x/io.stat": "8:0 rbytes=1000 wbytes=5000 rios=10 wios=50\n",
		"y/io.max":  "8:0 rbps=1 wbps=max riops=max wiops=max\n",
		"y/io.stat": "8:0 rbytes=1000 wbytes=5000 rios=10 wios=50\n",
	})
	groups, _, err := Find(h.IO.Root())
	if err != nil || len(groups) != 2 {
		t.Fatalf("Find = %v, %v", groups, err)
	}
	if groups[0].Group.Path() != "/x" {
		groups[0], groups[1] = groups[1], groups[0]
	}
	// Between the two readings, two seconds apart, x works and y's counters are reset.
	for i := range groups {
		if groups[i].before, err = groups[i].Group.Stats(); err != nil {
			t.Fatal(err)
		}
	}
	h.Write(cgrouptest.V2Dir+"/x/io.stat", "8:0 rbytes=3000 wbytes=5000 rios=14 wios=50\n")
	h.Write(cgrouptest.V2Dir+"/y/io.stat", "8:0 rbytes=0 wbytes=0 rios=0 wios=0\n")
	for i := range groups {
		after, err := groups[i].Group.Stats()
		if err != nil {
			t.Fatal(err)
		}
		groups[i].rate(after, 2)
	}
	x, y := groups[0].Usages, groups[1].Usages
	if want := (Rates{RBPS: 1000, RIOPS: 2}); !x[0].Counted || x[0].Rates != want {
		t.Errorf("x: %+v, want %+v", x[0], want)
	}
	if x[1].Counted || x[1].Rates != (Rates{}) {
		t.Errorf("x, a device without counters: %+v", x[1])
	}
	if y[0].Rates != (Rates{}) {
		t.Errorf("y, whose counters went backwards: %+v", y[0])
	}
}

func TestMeasure(t *testing.T) {
	h := host(t, map[string]string{
		"x/io.max":  "8:0 rbps=1 wbps=max riops=max wiops=max\n",
		"x/io.stat": "8:0 rbytes=1000 wbytes=5000 rios=10 wios=50\n",
	})
	groups, _, err := Find(h.IO.Root())
	if err != nil || len(groups) != 1 {
		t.Fatalf("Find = %v, %v", groups, err)
	}
	if err := Measure(t.Context(), groups, time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	if u := groups[0].Usages[0]; !u.Counted || u.Rates != (Rates{}) {
		t.Errorf("a group that does nothing: %+v", u)
	}
	if err := os.RemoveAll(filepath.Join(h.Root, cgrouptest.V2Dir, "x")); err != nil {
		t.Fatal(err)
	}
	if err := Measure(t.Context(), groups, time.Nanosecond); err != nil {
		t.Errorf("Measure of a removed group: %v", err)
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Measure(ctx, nil, time.Hour); err != context.Canceled {
		t.Errorf("Measure = %v", err)
	}
}

func TestRatesGet(t *testing.T) {
	r := Rates{RBPS: 1, WBPS: 2, RIOPS: 3, WIOPS: 4}
	for i, k := range limit.Keys {
		if got := r.Get(k); got != float64(i+1) {
			t.Errorf("Get(%s) = %v", k, got)
		}
	}
	if s, ok := of(nil, blkdev.Number{Major: 8}); ok {
		t.Errorf("of nothing = %v", s)
	}
}

// What goes through a device to those below it is counted once; what a group does on these besides,
// too.
func TestSumOfAStack(t *testing.T) {
	disk := func(minor uint32) blkdev.Number { return blkdev.Number{Major: 8, Minor: minor} }
	rates := func(w float64) *Rates { return &Rates{WBPS: w, WIOPS: w / 10} }
	for name, c := range map[string]struct {
		devices []Device
		want    float64
	}{
		"two disks":            {[]Device{{Number: disk(0), Rates: rates(100)}, {Number: disk(16), Rates: rates(50)}}, 150},
		"a volume":             {[]Device{{Number: disk(0), Rates: rates(100)}, {Number: disk(1), Below: []blkdev.Number{disk(0)}, Rates: rates(100)}}, 100},
		"a volume and more":    {[]Device{{Number: disk(0), Rates: rates(130)}, {Number: disk(1), Below: []blkdev.Number{disk(0)}, Rates: rates(100)}}, 130},
		"a mirror":             {[]Device{{Number: disk(0), Rates: rates(100)}, {Number: disk(16), Rates: rates(100)}, {Number: disk(1), Below: []blkdev.Number{disk(0), disk(16)}, Rates: rates(100)}}, 100},
		"three on each other":  {[]Device{{Number: disk(0), Rates: rates(100)}, {Number: disk(1), Below: []blkdev.Number{disk(0)}, Rates: rates(100)}, {Number: disk(2), Below: []blkdev.Number{disk(1)}, Rates: rates(100)}}, 100},
		"what is not known":    {[]Device{{Number: disk(0), Rates: rates(100)}, {Number: disk(1), Below: []blkdev.Number{disk(0)}}}, 100},
		"no device that moves": {[]Device{{Number: disk(0)}}, 0},
	} {
		g := Group{Devices: c.devices}
		if sum, known := g.Sum(); sum.WBPS != c.want || sum.WIOPS != c.want/10 || known != (c.want > 0) {
			t.Errorf("%s: %+v, %v; want %v", name, sum, known, c.want)
		}
	}
}

// However many limited groups there are, each is asked about before another one is asked about
// again.
func TestEachGroupIsAskedAbout(t *testing.T) {
	files := map[string]string{}
	for i := range 5 * describeMost / 2 {
		g := fmt.Sprintf("g%03d/", i)
		files[g+"io.stat"], files[g+"io.max"] = "", "8:0 rbps=max wbps=1000 riops=max wiops=max\n"
	}
	w := watching(t, cgroupfs.V2, v2(files))
	w.o.Details = 1000
	asked := map[string]int{}
	w.o.Describe = func(_ context.Context, groups []Limited) (all []Known, err error) {
		if len(groups) > describeMost {
			t.Errorf("%d at once", len(groups))
		}
		for _, g := range groups {
			asked[g.Group.Path()]++
			all = append(all, Known{Target: "unit:x"})
		}
		return all, nil
	}
	w.start()
	for range 3 { // the first are due again each time
		w.sample(describeEvery)
	}
	if len(asked) != len(files)/2 {
		t.Errorf("%d of %d groups were asked about: %v", len(asked), len(files)/2, asked)
	}
}
