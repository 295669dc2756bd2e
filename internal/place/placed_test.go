package place

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

func TestJoin(t *testing.T) {
	ext4 := blkdev.Mount{FSType: "ext4"}
	one := on(vda, ext4, wbps(1e6))
	other := on(vda, ext4, rbps(2e6))
	other.Chain.Spec = "/logs"
	all, err := join([]Placed{one}, other)
	if err != nil || len(all) != 1 || all[0].Limit != wbps(1e6).Overlay(rbps(2e6)) || len(all[0].Chain.Notes) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err = join(all, on(vdb, ext4, wbps(1e6))); err != nil || len(all) != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	var spec *SpecError
	if _, err := join(all, on(vda, ext4, wbps(3e6))); !errors.As(err, &spec) || !strings.Contains(err.Error(), "3 MB/s") {
		t.Errorf("two rates of one device: %v", err)
	}
	if got := Changes(all); len(got) != 2 || got[0].Device != vda.Number || got[0].Limit != all[0].Limit {
		t.Errorf("%+v", got)
	}
}

func TestHostReadsAGroup(t *testing.T) {
	at := cgrouptest.V1Dir
	h := cgrouptest.New(t, cgroupfs.V1, map[string]string{
		"proc/sys/kernel/osrelease":                "6.1.0\n",
		at + "/blkio.throttle.write_bps_device":    "254:0 5000000\n",
		at + "/x/blkio.throttle.write_bps_device":  "254:0 1000000\n",
		at + "/x/cgroup.procs":                     "",
		at + "/x/y/cgroup.procs":                   "11\n12\n",
		"sys/class/bdi/254:0/strict_limit":         "1\n",
		"sys/class/bdi/254:0/max_bytes":            "1000000\n",
		at + "/x/blkio.throttle.read_bps_device":   "",
		at + "/x/blkio.throttle.read_iops_device":  "",
		at + "/x/blkio.throttle.write_iops_device": "",
		at + "/blkio.throttle.read_bps_device":     "",
		at + "/blkio.throttle.read_iops_device":    "",
		at + "/blkio.throttle.write_iops_device":   "",
	})
	host := Host{Root: h.Root, FS: h.FS, State: state.At(h.Root)}
	g, err := host.Group(h.Group("/x"), false, []blkdev.Number{vda.Number})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Rules) != 1 || g.Own != 0 || len(g.Below) != 1 || g.Below[0] != (Below{"/x/y", 2}) || g.Release.Major != 6 || g.NoPacer == nil || g.Paced != nil {
		t.Errorf("%+v", g)
	}
	if !g.Rooted(vda.Number, wbps(6e6)) || g.Rooted(vda.Number, wbps(4e6)) || g.Rooted(vdb.Number, wbps(6e6)) {
		t.Errorf("bounds %+v", g.Bounds)
	}
	d, err := host.Decide(h.Group("/x"), false, []Placed{on(vda, blkdev.Mount{FSType: "ext4"}, wbps(1e6))}, limit.HoldAuto)
	if err != nil || d.Places[0].Direct.Holds() || d.Paced != nil {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = host.Decide(h.Group("/new"), true, []Placed{on(vda, blkdev.Mount{FSType: "ext4"}, wbps(1e6))}, limit.HoldAuto); err != nil || !d.Places[0].Direct.Holds() || d.Places[0].Buffered.Holds() {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err = d.Without(); err != nil || d.Hold != limit.HoldKernel {
		t.Errorf("%+v, %v", d, err)
	}
}

// Why BPF cannot see what escapes is read on v2 alone: on v1 nothing does. A copy of a host has no BPF.
func TestUnseenIsOfV2(t *testing.T) {
	for version, want := range map[cgroupfs.Version]bool{cgroupfs.V1: false, cgroupfs.V2: true} {
		h := cgrouptest.New(t, version, map[string]string{"proc/sys/kernel/osrelease": "6.1.0\n"})
		each := Host{Root: h.Root, FS: h.FS, State: state.At(h.Root)}
		for _, host := range []Host{each, each.ForMany()} {
			for range 2 {
				if g, err := host.Group(h.Group("/new"), true, nil); err != nil || (g.Unseen != nil) != want {
					t.Errorf("%s: %v, %v", version, g.Unseen, err)
				}
			}
		}
	}
}

// A group of v2 that is there without the io controller gets it with its first limit. A new group, one that
// has it, and all of v1 do not.
func TestLate(t *testing.T) {
	const v2 = "sys/fs/cgroup/"
	for _, c := range []struct {
		version cgroupfs.Version
		file    string
		toMake  bool
		want    bool
	}{
		{cgroupfs.V2, v2 + "x/cgroup.procs", false, true},
		{cgroupfs.V2, v2 + "x/cgroup.procs", true, false},
		{cgroupfs.V2, v2 + "x/io.stat", false, false},
		{cgroupfs.V1, cgrouptest.V1Dir + "/x/cgroup.procs", false, false},
	} {
		files := map[string]string{"proc/sys/kernel/osrelease": "6.1.0\n", c.file: ""}
		if c.version == cgroupfs.V2 {
			files[v2+"cgroup.controllers"], files[v2+"x/cgroup.controllers"] = "io memory\n", "memory\n"
		}
		h := cgrouptest.New(t, c.version, files)
		g, err := Host{Root: h.Root, FS: h.FS, State: state.At(h.Root)}.Group(h.Group("/x"), c.toMake, nil)
		if c.version == cgroupfs.V1 {
			err = nil // it has no rules either
		}
		if err != nil || g.Late != c.want {
			t.Errorf("%s %s: late %v, want %v, %v", c.version, c.file, g.Late, c.want, err)
		}
	}
}

// What binds a whole device is read once for many groups, if there is room for it.
func TestBoundsOnce(t *testing.T) {
	file := cgrouptest.V1Dir + "/blkio.throttle.write_bps_device"
	files := map[string]string{"proc/sys/kernel/osrelease": "6.1.0\n"}
	for _, rate := range []string{"read_bps", "read_iops", "write_iops"} {
		files[cgrouptest.V1Dir+"/blkio.throttle."+rate+"_device"] = ""
	}
	h := cgrouptest.New(t, cgroupfs.V1, files)
	each := Host{Root: h.Root, FS: h.FS, State: state.At(h.Root)}
	once := each.ForMany()
	for i, rate := range []uint64{5e6, 4e6} {
		h.Write(file, fmt.Sprintf("254:0 %d\n", rate))
		for of, want := range map[*Host]uint64{&each: rate, &once: 5e6} {
			g, err := of.Group(h.Group("/new"), true, []blkdev.Number{vda.Number, vdb.Number})
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Bounds[vda.Number].Rule.Get(limit.WBPS); got != limit.PerSecond(want) || g.Bounds[vdb.Number].Rule != limit.None {
				t.Errorf("reading %d: %+v, want %d", i, g.Bounds, want)
			}
		}
	}
}
