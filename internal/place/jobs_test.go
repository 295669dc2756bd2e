package place

import (
	"testing"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

// What the pacer holds is read once for many groups: who decides about one of them then reads no record.
func TestJobsOnce(t *testing.T) {
	lab.Unit(t)
	h := cgrouptest.New(t, cgroupfs.V2, nil)
	dir := state.At(t.TempDir())
	job := func(path string, n uint64) pacer.Job {
		return pacer.Job{Limited: pacer.PlaceOf(h.Group(path), "blkio"), Devices: []blkdev.Number{vda.Number}, WBPS: n}
	}
	record, err := dir.New("pace", job("/later", 9))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := record.Done(); err != nil {
			t.Error(err)
		}
	}()
	many := Host{Root: "/", FS: h.FS, State: dir, Jobs: pacer.ByPlace([]pacer.Job{job("/a", 7), job("/b", 8)})}
	for path, want := range map[string]uint64{"/a": 7, "/b": 8, "/c": 0, "/later": 0} {
		is, err := many.Paced(h.Group(path))
		if err != nil || (is.Written != nil) != (want > 0) || want > 0 && is.Written.WBPS != want {
			t.Errorf("%s: %+v, %v", path, is, err)
		}
		if asked, err := many.IsAsked(h.Group(path)); err != nil || asked != (want > 0) {
			t.Errorf("%s: %v, %v", path, asked, err)
		}
	}
}

// Rules that were read just now are not read again.
func TestDecideWithKnownRules(t *testing.T) {
	lab.Unit(t)
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{"proc/sys/kernel/osrelease": "6.1.0\n", cgrouptest.V2Dir + "/x/io.max": "254:0 rbps=max wbps=7 riops=max wiops=max\n"})
	host := Host{Root: h.Root, FS: h.FS, State: state.At(h.Root)}
	known := []cgroupfs.Rule{{Device: vda.Number, Limit: limit.None.With(limit.WBPS, limit.PerSecond(5))}}
	d, err := host.DecideWith(h.Group("/x"), known, []Placed{on(vda, blkdev.Mount{FSType: "ext4"}, wbps(9))}, limit.HoldAuto)
	if err != nil || len(d.Group.Rules) != 1 || d.Group.Rules[0] != known[0] {
		t.Errorf("%+v, %v", d.Group.Rules, err)
	}
}
