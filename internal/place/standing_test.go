package place

import (
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// What weir show says of a rate is what is decided of it.
func TestBrief(t *testing.T) {
	ext4, vfat := blkdev.Mount{FSType: "ext4"}, blkdev.Mount{FSType: "vfat"}
	paced := &Paced{WBPS: 10e6, Devices: []blkdev.Number{vda.Number}}
	both := wbps(10e6).Overlay(wiops(200))
	for _, c := range []struct {
		name  string
		group Group
		fs    blkdev.Mount
		limit limit.Limit
		key   limit.Key
		want  string
	}{
		{"v2, the kernel", Group{Controller: v2}, ext4, wbps(10e6), limit.WBPS, "not other groups' files"},
		{"v2, the pacer", Group{Controller: v2, Escapes: escaping}, ext4, wbps(10e6), limit.WBPS, "all"},
		{"v2, the pacer, operations", Group{Controller: v2, Escapes: escaping}, ext4, both, limit.WIOPS, "not other groups' files"},
		{"v2, no cgroup writeback", Group{Controller: v2}, vfat, wbps(10e6), limit.WBPS, "not buffered"},
		{"v2, reads", Group{Controller: v2}, ext4, rbps(10e6), limit.RBPS, "all"},
		{"v1, the kernel", Group{Controller: v1}, ext4, wbps(10e6), limit.WBPS, "not buffered"},
		{"v1, the pacer", Group{Controller: v1, Paced: paced}, ext4, wbps(10e6), limit.WBPS, "all"},
		{"v1, the pacer, operations", Group{Controller: v1, Paced: paced}, ext4, both, limit.WIOPS, "not buffered"},
		{"v1, nobody is reached", Group{Controller: v1, Below: []Below{{"/x/y", 1}}}, ext4, wbps(10e6), limit.WBPS, "nothing"},
		{"v1, the root group's rule", Group{Controller: v1, Bounds: map[blkdev.Number]RootBound{vda.Number: {Rule: wbps(10e6)}}}, ext4, wbps(10e6), limit.WBPS, "all; buffered at the disk only"},
	} {
		d, err := Decide(c.group, []Placed{on(vda, c.fs, c.limit)}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Places[0].Brief(c.key); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The file system that is mounted from a device decides, and of another root's host nothing is
// said of what only the pacer could hold.
func TestStanding(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/cgroup.controllers": "io memory\n", "sys/fs/cgroup/x/io.max": ""})
	rules := []cgroupfs.Rule{rule(vda, wbps(10e6)), rule(vdb, wbps(10e6))}
	vfat := blkdev.Mount{FSType: "vfat", Point: "/data"}
	chains := []blkdev.Chain{{Layers: []blkdev.Layer{{Mount: &vfat}}, Devices: []blkdev.Device{vdb}}}
	d, err := Host{Root: h.Root, FS: h.FS, State: state.At(h.Root)}.Standing(h.Group("/x"), rules, chains)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Places) != 2 || d.Places[0].Brief(limit.WBPS) != "all" || d.Places[1].Brief(limit.WBPS) != "not buffered" || d.Places[0].Foreign != nil {
		t.Errorf("%+v", d.Places)
	}
}
