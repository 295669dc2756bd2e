package place

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
)

var (
	vda = blkdev.Device{Number: blkdev.Number{Major: 254}, Name: "vda", Node: "/dev/vda", Kind: blkdev.Disk}
	vdb = blkdev.Device{Number: blkdev.Number{Major: 254, Minor: 16}, Name: "vdb", Node: "/dev/vdb", Kind: blkdev.Disk}

	newer = kernel.Release{Major: 6, Minor: 18}
	v1    = Controller{Version: cgroupfs.V1, Release: newer}
	v2    = Controller{Version: cgroupfs.V2, Memory: true, Release: newer}
	older = Controller{Version: cgroupfs.V1, Release: kernel.Release{Major: 6, Minor: 3}}
)

func wbps(n uint64) limit.Limit  { return limit.Limit{WBPS: limit.PerSecond(n)} }
func wiops(n uint64) limit.Limit { return limit.Limit{WIOPS: limit.PerSecond(n)} }
func rbps(n uint64) limit.Limit  { return limit.Limit{RBPS: limit.PerSecond(n)} }

// on places a limit on a file system of a device.
func on(d blkdev.Device, fs blkdev.Mount, l limit.Limit) Placed {
	return Placed{Chain: blkdev.Chain{Spec: "/data", Layers: []blkdev.Layer{{Mount: &fs}}, Devices: []blkdev.Device{d}}, Device: d, Limit: l}
}

func rule(d blkdev.Device, l limit.Limit) cgroupfs.Rule {
	return cgroupfs.Rule{Device: d.Number, Limit: limit.None.Overlay(l)}
}

// Each row is a group, a limit on it, and what is expected: by what buffered writes hold, and
// the rate at which the pacer is to.
func TestDecide(t *testing.T) {
	ext4 := blkdev.Mount{FSType: "ext4"}
	journal := blkdev.Mount{FSType: "ext4", SuperOptions: "rw,data=journal"}
	bound := func(l limit.Limit, bdi *kernel.BDI) map[blkdev.Number]RootBound {
		return map[blkdev.Number]RootBound{vda.Number: {l, bdi}}
	}
	volume := bound(wbps(10e6), &kernel.BDI{Strict: true, MaxBytes: 5e6})
	none := errors.New("no pacer here")
	paced := &Paced{WBPS: 10e6, Devices: []blkdev.Number{vda.Number}, Record: "/run/weir"}
	for _, c := range []struct {
		name     string
		group    Group
		placed   Placed
		how      limit.Hold
		direct   Mechanism
		buffered Mechanism
		paced    uint64
	}{
		{"v2", Group{Controller: v2}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Writeback, 0},
		{"v2, the pacer is asked for", Group{Controller: v2}, on(vda, ext4, wbps(10e6)), limit.HoldPacer, Throttle, Writeback, 10e6},
		{"v2, dax", Group{Controller: v2}, on(vda, blkdev.Mount{FSType: "ext4", SuperOptions: "rw,dax=always"}, wbps(10e6)), limit.HoldAuto, Nothing, Nothing, 0},
		{"v1, dax, the pacer is asked for", Group{Controller: v1}, on(vda, blkdev.Mount{FSType: "xfs", SuperOptions: "rw,dax"}, wbps(10e6)), limit.HoldPacer, Nothing, Nothing, 0},
		{"v2, dax for files that ask for it", Group{Controller: v2}, on(vda, blkdev.Mount{FSType: "ext4", SuperOptions: "rw,dax=inode"}, wbps(10e6)), limit.HoldAuto, Throttle, Writeback, 0},
		{"v2, vfat", Group{Controller: v2}, on(vda, blkdev.Mount{FSType: "vfat"}, wbps(10e6)), limit.HoldAuto, Throttle, Pacer, 10e6},
		{"v1", Group{Controller: v1}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Pacer, 10e6},
		{"v1, data=journal", Group{Controller: v1}, on(vda, journal, wbps(10e6)), limit.HoldAuto, Pacer, Pacer, 10e6},
		{"v1, data=journal, before 6.4", Group{Controller: older}, on(vda, journal, wbps(10e6)), limit.HoldAuto, Nothing, Nothing, 0},
		{"v2, data=journal, before 6.4, paced for another disk", Group{Controller: Controller{Version: cgroupfs.V2, Memory: true, Release: older.Release}, Paced: paced}, on(vda, journal, wbps(10e6)), limit.HoldAuto, Nothing, Nothing, 10e6},
		{"v1, data=journal, the kernel", Group{Controller: v1}, on(vda, journal, wbps(10e6)), limit.HoldKernel, Nothing, Nothing, 0},
		{"v1, no pacer", Group{Controller: v1, NoPacer: none}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Nothing, 0},
		{"v1, the kernel", Group{Controller: v1}, on(vda, ext4, wbps(10e6)), limit.HoldKernel, Throttle, Nothing, 0},
		{"v1, the kernel instead of the pacer", Group{Controller: v1, Paced: paced}, on(vda, ext4, wbps(10e6)), limit.HoldKernel, Throttle, Nothing, 0},
		{"v1, as it is", Group{Controller: v1, Paced: paced}, on(vda, ext4, wbps(10e6)), "", Throttle, Pacer, 10e6},
		{"v1, as it is: the rule is stricter", Group{Controller: v1, Paced: paced}, on(vda, ext4, wbps(5e6)), "", Throttle, Nothing, 10e6},
		{"v1, as it is: another disk", Group{Controller: v1, Paced: paced}, on(vdb, ext4, wbps(10e6)), "", Throttle, Nothing, 10e6},
		{"v1, reads too, while it is paced", Group{Controller: v1, Paced: paced, Rules: []cgroupfs.Rule{rule(vda, wbps(10e6))}}, on(vda, ext4, rbps(5e6)), limit.HoldAuto, Throttle, Pacer, 10e6},
		{"v1, a stricter rule of another disk", Group{Controller: v1, Rules: []cgroupfs.Rule{rule(vdb, wbps(2e6))}}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Pacer, 2e6},
		{"v1, operations", Group{Controller: v1}, on(vda, ext4, wiops(100)), limit.HoldAuto, Throttle, Nothing, 0},
		{"v1, operations too", Group{Controller: v1}, on(vda, ext4, wbps(10e6).Overlay(wiops(100))), limit.HoldAuto, Throttle, Pacer, 10e6},
		{"v1, volume", Group{Controller: v1, Bounds: volume}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Volume, 0},
		{"v1, stricter than the volume", Group{Controller: v1, Bounds: volume}, on(vda, ext4, wbps(5e6)), limit.HoldAuto, Throttle, Pacer, 5e6},
		{"v1, the root's rule", Group{Controller: v1, Bounds: bound(wbps(10e6), nil)}, on(vda, ext4, wbps(10e6)), limit.HoldKernel, Throttle, RootRule, 0},
		{"v1, the root's rule, with a pacer", Group{Controller: v1, Bounds: bound(wbps(10e6), nil)}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Pacer, 10e6},
		{"v1's root", Group{Controller: Controller{Version: cgroupfs.V1, Root: true}, NoPacer: none}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Writeback, 0},
		{"v1, all below", Group{Controller: v1, Below: []Below{{"/x/y", 2}}}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Nothing, Nothing, 0},
		{"v1, some below", Group{Controller: v1, Own: 1, Below: []Below{{"/x/y", 2}}}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Pacer, 10e6},
		{"v2, all below", Group{Controller: v2, Below: []Below{{"/x/y", 2}}}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, Throttle, Writeback, 0},
		{"lifted", Group{Controller: v1, Paced: paced, Rules: []cgroupfs.Rule{rule(vda, wbps(10e6))}}, on(vda, ext4, limit.Limit{WBPS: limit.Unlimited}), limit.HoldAuto, Throttle, Nothing, 0},
	} {
		d, err := Decide(c.group, []Placed{c.placed}, c.how)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		rate := uint64(0)
		if d.Paced != nil {
			rate = d.Paced.WBPS
		}
		e := d.Places[0]
		if e.Direct.Mechanism != c.direct || e.Buffered.Mechanism != c.buffered || rate != c.paced {
			t.Errorf("%s: direct by %q, buffered by %q, paced at %d; want %q, %q, %d", c.name, e.Direct.Mechanism, e.Buffered.Mechanism, rate, c.direct, c.buffered, c.paced)
		}
		for path, by := range map[string]By{"direct": e.Direct, "sync": e.Sync, "buffered": e.Buffered, "mapped": e.Mapped} {
			if !by.Holds() && by.Why == "" {
				t.Errorf("%s: %s writes do not hold, and nobody says why", c.name, path)
			}
		}
	}
}

// Writes over files of other groups are held by the pacer where it sees them and counts for the
// device, at most at its limit; and nowhere else.
func TestDecideOfOthersFiles(t *testing.T) {
	ext4, vfat := blkdev.Mount{FSType: "ext4"}, blkdev.Mount{FSType: "vfat"}
	blind, none := errors.New("no BPF"), errors.New("no pacer")
	for _, c := range []struct {
		name  string
		group Group
		at    Placed
		how   limit.Hold
		want  *By // Why is only whether there is one
	}{
		{"auto", Group{Controller: v2}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, &By{Mechanism: Pacer}},
		{"auto, operations too", Group{Controller: v2}, on(vda, ext4, wbps(10e6).Overlay(wiops(200))), limit.HoldAuto, &By{Mechanism: Pacer, Why: "bytes only"}},
		{"operations alone", Group{Controller: v2}, on(vda, ext4, wiops(200)), limit.HoldAuto, &By{Why: "why"}},
		{"the kernel's rule alone", Group{Controller: v2, Escapes: escaping}, on(vda, ext4, wbps(10e6)), limit.HoldKernel, &By{Why: "why"}},
		{"without BPF", Group{Controller: v2, Unseen: blind}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, &By{Why: "why"}},
		{"without a pacer", Group{Controller: v2, NoPacer: none}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, &By{Why: "why"}},
		{"the pacer for all", Group{Controller: v2, Unseen: blind}, on(vda, ext4, wbps(10e6)), limit.HoldPacer, &By{Mechanism: Pacer}},
		{"as it is", Group{Controller: v2, Escapes: escaping}, on(vda, ext4, wbps(10e6)), "", &By{Mechanism: Pacer}},
		{"as it is: nothing", Group{Controller: v2}, on(vda, ext4, wbps(10e6)), "", &By{Why: "why"}},
		{"as it is: the rule is stricter", Group{Controller: v2, Escapes: escaping}, on(vda, ext4, wbps(5e6)), "", &By{Why: "why"}},
		{"as it is: another disk", Group{Controller: v2, Escapes: escaping}, on(vdb, ext4, wbps(10e6)), "", &By{Why: "why"}},
		{"reads", Group{Controller: v2}, on(vda, ext4, rbps(10e6)), limit.HoldAuto, nil},
		{"no cgroup writeback", Group{Controller: v2}, on(vda, vfat, wbps(10e6)), limit.HoldAuto, nil},
		{"v1", Group{Controller: v1}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, nil},
		{"v1's root", Group{Controller: Controller{Version: cgroupfs.V1, Root: true}, NoPacer: none}, on(vda, ext4, wbps(10e6)), limit.HoldAuto, nil},
	} {
		d, err := Decide(c.group, []Placed{c.at}, c.how)
		if err != nil {
			t.Fatal(err)
		}
		switch got := d.Places[0].Foreign; {
		case got == nil || c.want == nil:
			if got != nil || c.want != nil {
				t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
			}
		case got.Mechanism != c.want.Mechanism || (got.Why == "") != (c.want.Why == ""):
			t.Errorf("%s: %+v, want %+v", c.name, *got, *c.want)
		}
	}
}

func TestDecideRefuses(t *testing.T) {
	ext4 := blkdev.Mount{FSType: "ext4"}
	var nothing *NothingToPaceError
	if _, err := Decide(Group{Controller: v1}, []Placed{on(vda, ext4, rbps(1e6))}, limit.HoldPacer); !errors.As(err, &nothing) {
		t.Errorf("nothing for the pacer to hold: %v", err)
	}
	journal := blkdev.Mount{FSType: "ext4", SuperOptions: "rw,data=journal"}
	if _, err := Decide(Group{Controller: older}, []Placed{on(vda, journal, wbps(1e6))}, limit.HoldPacer); !errors.As(err, &nothing) || !strings.Contains(err.Error(), "before Linux 6.4") {
		t.Errorf("what the kernel does not count: %v", err)
	}
	none := errors.New("no pacer here")
	if _, err := Decide(Group{Controller: v1, NoPacer: none}, []Placed{on(vda, ext4, wbps(1e6))}, limit.HoldPacer); !errors.Is(err, none) {
		t.Errorf("a pacer that cannot be had: %v", err)
	}
}

// escaping is what the pacer holds of what escapes a rule of 10 MB/s on vda.
var escaping = &Paced{WBPS: 10e6, Devices: []blkdev.Number{vda.Number}, Record: "/run/weir"}

// The lines name the actor, and what does not hold has a reason.
func TestLines(t *testing.T) {
	ext4 := blkdev.Mount{FSType: "ext4"}
	for _, c := range []struct {
		name  string
		group Group
		limit limit.Limit
		how   limit.Hold
		want  []string
		notes []string
	}{
		{"v2", Group{Controller: v2}, wbps(10e6), limit.HoldAuto,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle; buffered writes by writeback"},
			[]string{"expected to hold: writes to other groups' files by weir's pacer, which pauses the group only for those"}},
		{"v2, the kernel", Group{Controller: v2, Escapes: escaping}, wbps(10e6), limit.HoldKernel,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle; buffered writes by writeback"},
			[]string{"expected NOT to hold: writes to other groups' files, which the kernel charges to those groups"}},
		{"v2, without BPF", Group{Controller: v2, Unseen: errors.New("no BPF")}, wbps(10e6), limit.HoldAuto,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle; buffered writes by writeback"},
			[]string{"expected NOT to hold: writes to other groups' files, which the kernel charges to those groups (weir's pacer needs BPF to see them, which is not available here)"}},
		{"v2, without weird", Group{Controller: v2, Unseen: &fault.Unsupported{Feature: "run weird", Reason: "it is not beside weir"}}, wbps(10e6), limit.HoldAuto,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle; buffered writes by writeback"},
			[]string{"expected NOT to hold: writes to other groups' files, which the kernel charges to those groups (weir's pacer cannot see them: run weird: it is not beside weir)"}},
		{"v2, before the io controller", Group{Controller: v2, Late: true}, wbps(10e6), limit.HoldKernel,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle; buffered writes by writeback"},
			[]string{"expected NOT to hold: writes to other groups' files, which the kernel charges to those groups",
				"expected NOT to hold at first: buffered writes to files that the group has written before; the kernel charges them to it once it writes to another file of the disk"}},
		{"v2, before the io controller, with BPF", Group{Controller: v2, Late: true}, wbps(10e6), limit.HoldAuto,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle; buffered writes by writeback"},
			[]string{"expected to hold: writes to other groups' files by weir's pacer, which pauses the group only for those"}},
		{"v2, as it is", Group{Controller: v2, Escapes: escaping, Rules: []cgroupfs.Rule{rule(vda, wbps(10e6))}}, rbps(10e6), limit.HoldAuto,
			[]string{"expected to hold: reads by the kernel's throttle"},
			[]string{"expected to hold: writes to other groups' files by weir's pacer, which pauses the group only for those"}},
		{"v2, operations too", Group{Controller: v2}, wbps(10e6).Overlay(wiops(200)), limit.HoldAuto,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle; buffered writes by writeback"},
			[]string{"expected to hold: writes to other groups' files by weir's pacer, which pauses the group only for those",
				"note: the limit on operations does not apply to writes to other groups' files: the pacer counts bytes, not operations"}},
		{"v2, reads", Group{Controller: v2}, rbps(10e6), limit.HoldAuto, []string{"expected to hold: reads by the kernel's throttle"}, nil},
		{"v2, both", Group{Controller: v2}, rbps(10e6).Overlay(wbps(1e6)), limit.HoldAuto,
			[]string{"expected to hold: reads, direct and synchronous writes by the kernel's throttle; buffered writes by writeback"},
			[]string{"expected to hold: writes to other groups' files by weir's pacer, which pauses the group only for those"}},
		{"v1, the kernel", Group{Controller: v1}, wbps(10e6), limit.HoldKernel,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle", "expected NOT to hold: buffered writes (cgroup v1 charges writeback to the root group)"}, nil},
		{"v1", Group{Controller: v1}, wbps(10e6).Overlay(wiops(200)), limit.HoldAuto,
			[]string{"expected to hold: direct and synchronous writes by the kernel's throttle; buffered writes by weir's pacer",
				"note: the pacer counts bytes, not operations, so 200 ops/s applies only to direct and synchronous writes"},
			[]string{"note: weir's pacer pauses all processes of the group for moments; they do not compute meanwhile"}},
		{"v1, all below", Group{Controller: v1, Below: []Below{{"/x/a", 2}, {"/x/b", 1}, {"/x/c", 1}, {"/x/d", 1}}}, wbps(10e6), limit.HoldAuto,
			[]string{"expected NOT to hold: direct, synchronous and buffered writes (on cgroup v1 a limit does not reach child groups, and all of the group's processes are there: /x/a, /x/b, /x/c and 1 more)"}, nil},
		{"v1, some below", Group{Controller: v1, NoPacer: errors.New("none"), Own: 1, Below: []Below{{"/x/a", 2}}}, rbps(10e6), limit.HoldAuto,
			[]string{"expected to hold: reads by the kernel's throttle"},
			[]string{"warning: on cgroup v1 the limit does not reach child groups with processes: /x/a; set it for each of those too"}},
		{"nothing bound", Group{Controller: v1}, limit.Limit{WBPS: limit.Unlimited}, limit.HoldAuto, nil, nil},
	} {
		d, err := Decide(c.group, []Placed{on(vda, ext4, c.limit)}, c.how)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Places[0].Lines(); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		var got []string
		for _, n := range d.Notes() {
			got = append(got, n.String())
		}
		if !slices.Equal(got, c.notes) {
			t.Errorf("%s: notes %q, want %q", c.name, got, c.notes)
		}
	}
}
