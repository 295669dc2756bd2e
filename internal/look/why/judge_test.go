package why

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

var (
	vda = blkdev.Device{Number: blkdev.Number{Major: 254}, Name: "vda", Node: "/dev/vda", Kind: blkdev.Disk}
	vdb = blkdev.Device{Number: blkdev.Number{Major: 254, Minor: 16}, Name: "vdb", Node: "/dev/vdb", Kind: blkdev.Disk}
)

func wbps(n uint64) limit.Limit { return limit.Limit{WBPS: limit.PerSecond(n)} }

func rule1(d blkdev.Device, n uint64) cgroupfs.Rule {
	return cgroupfs.Rule{Device: d.Number, Limit: limit.None.Overlay(wbps(n))}
}

// good are the facts of a v2 group with a limit of 10 MB/s on vda, where all holds.
func good() Facts {
	io := Mounted{Version: 2, At: "/sys/fs/cgroup", Controllers: []string{"cpu", "io", "memory"}}
	return Facts{
		Target: "cgroup:/x", Release: kernel.Release{Major: 6, Minor: 18, Text: "6.18.0"}, Mounted: []Mounted{io}, IO: &io,
		Group: Group{Path: "/x", Dir: "/sys/fs/cgroup/x", Version: cgroupfs.V2, Controllers: []string{"io", "memory"}, Rules: []cgroupfs.Rule{rule1(vda, 10e6)}},
		Places: []Place{{Spec: "/data", Named: true, FS: &blkdev.Mount{FSType: "ext4", Point: "/data"}, Writeback: true,
			Devices: []Device{{Device: vda, Limit: limit.None.Overlay(wbps(10e6)), InForce: limit.None.Overlay(wbps(10e6))}}}},
	}
}

func TestNothingIsFoundWhereAllHolds(t *testing.T) {
	f := good()
	f.Group.Escapes = &place.Paced{WBPS: 10e6, Devices: []blkdev.Number{vda.Number}, Record: "/run/weir"}
	r := Judge(f)
	if len(r.Findings) != 1 || r.Findings[0].Code != "escapes-paced" || r.Worst() != Yes || r.Supposed {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Matrix {
		want, by := Yes, place.Throttle
		switch {
		case c.Read:
			want, by = NoLimit, ""
		case c.Path == load.Buffered:
			want, by = AtDevice, place.Writeback
		case c.Path == mapped:
			by = place.Writeback
		}
		if c.Held != want || c.Mechanism != by {
			t.Errorf("%+v, want %s by %q", c, want, by)
		}
	}
	if len(r.Matrix) != 7 {
		t.Errorf("%d cells", len(r.Matrix))
	}
}

// What is synced on ext4 with data=journal is held since Linux 6.4, and nothing else is.
func TestDataJournal(t *testing.T) {
	for release, held := range map[kernel.Release]Held{{Major: 6, Minor: 1, Text: "6.1"}: No, {Major: 6, Minor: 4, Text: "6.4"}: Yes, {}: No} {
		f := good()
		f.Release = release
		f.Places[0].FS.SuperOptions, f.Places[0].Writeback = "rw,data=journal", false
		for _, c := range Judge(f).Matrix {
			want := held
			switch {
			case c.Read:
				want = NoLimit
			case c.Path == load.Direct || c.Path == load.Buffered:
				want = No
			}
			if c.Held != want {
				t.Errorf("%q: %+v, want %s", release.Text, c, want)
			}
		}
	}
}

// Each rule: what is changed in good facts, what is found, and what becomes of a cell.
func TestRules(t *testing.T) {
	lvm := blkdev.Device{Number: blkdev.Number{Major: 253}, Node: "/dev/mapper/vg-x", Kind: blkdev.DM, Flavor: "lvm", Beneath: []blkdev.Device{vda}}
	crypt := lvm
	crypt.Flavor = "crypt"
	loop := blkdev.Device{Number: blkdev.Number{Major: 7}, Name: "loop0", Node: "/dev/loop0", Kind: blkdev.Loop, Backing: &blkdev.Backing{File: "/img"}, Beneath: []blkdev.Device{vda}}
	for _, c := range []struct {
		code     string
		severity Severity
		buffered Held
		change   func(*Facts)
	}{
		{"memory-elsewhere", Breaks, No, func(f *Facts) { f.IO.Controllers = []string{"io"}; f.Places[0].Writeback = false }},
		{"io-not-enabled", Breaks, No, func(f *Facts) { f.Group.Controllers = []string{"memory"} }},
		{"root-group", Breaks, No, func(f *Facts) { f.Group.Root = true }},
		{"read-only", Note, AtDevice, func(f *Facts) { f.IO.ReadOnly = true }},
		{"not-in-kernel", Breaks, No, func(f *Facts) { f.Config = kernel.Config{File: "/proc/config.gz"} }},
		{"no-block-device", Breaks, No, func(f *Facts) {
			f.Places = append(f.Places, Place{Spec: "/tmp", Named: true, Err: &blkdev.NoBlockDeviceError{Path: "/tmp", FSType: "tmpfs", Reason: "tmpfs keeps its files in memory"}})
			slices.Reverse(f.Places)
		}},
		{"no-cgroup-writeback", Breaks, No, func(f *Facts) {
			f.Places[0].FS.FSType, f.Places[0].Writeback, f.Places[0].WhyNot = "vfat", false, "vfat has no cgroup writeback"
		}},
		{"ext4-data-journal", Breaks, No, func(f *Facts) { f.Places[0].FS.SuperOptions, f.Places[0].Writeback = "rw,data=journal", false }},
		{"no-writeback", Breaks, No, func(f *Facts) { f.Places[0].Writeback, f.Places[0].WhyNot = false, "of a reason that no rule knows" }},
		{"foreign-inode", Breaks, No, func(f *Facts) { f.Places[0].Files = owned(inode.Group{Path: "/y"}) }},
		{"foreign-inode", Breaks, No, func(f *Facts) { f.Places[0].Files = owned(inode.Group{Path: "/", Root: true}) }},
		{"foreign-inode", Breaks, No, func(f *Facts) { f.Places[0].Files = owned(inode.Group{Path: "/x", Dead: true}) }},
		{"foreign-inode", Breaks, No, func(f *Facts) { f.Places[0].Files = owned(inode.Group{Name: "y", Dead: true}) }},
		{"foreign-inode", Breaks, No, func(f *Facts) { f.Places[0].Files = owned(inode.Group{Path: "/xy"}) }},
		{"foreign-inode", Breaks, No, func(f *Facts) {
			f.Places[0].Files = []inode.File{{Path: "/data/f", Owner: inode.Owner{State: inode.Unkept}}}
		}},
		{"foreign-inode", Breaks, No, func(f *Facts) { // a group that weir will make owns nothing yet
			f.Group.ToMake, f.Group.Path = true, "/weir-new"
			f.Places[0].File, f.Places[0].Files = "/data/f", owned(inode.Group{Path: "/x"})
		}},
		{"", "", AtDevice, func(f *Facts) {
			f.Places[0].Files = owned(inode.Group{Path: "/x"}, inode.Group{Path: "/x/below"}, inode.Group{Path: "/x/below", Dead: true})
			f.Places[0].Files = append(f.Places[0].Files, inode.File{Path: "/data/new", Owner: inode.Owner{State: inode.Nobody}})
		}},
		{"", "", NoLimit, func(f *Facts) { // of writes
			f.Places[0].Devices[0].Limit = limit.None.Overlay(limit.Limit{RBPS: limit.PerSecond(1e6)})
			f.Places[0].Files = owned(inode.Group{Path: "/y"})
		}},
		{"inode-not-known", Note, AtDevice, func(f *Facts) { f.Places[0].OwnersErr = errors.New("no BPF") }},
		{"inode-not-known", Note, Unknown, func(f *Facts) { f.Places[0].OwnersErr, f.Places[0].File = errors.New("no BPF"), "/data/f" }},
		{"rule-elsewhere", Breaks, No, func(f *Facts) {
			f.Group.Rules = []cgroupfs.Rule{rule1(vdb, 1e6)}
			f.Places[0].Devices[0].Limit = limit.Limit{}
		}},
		{"unused-device", Note, AtDevice, func(f *Facts) { f.Group.Rules = append(f.Group.Rules, rule1(vdb, 1e6)); f.AllDisks = true }},
		{"disk-without-limit", Note, AtDevice, func(f *Facts) {
			f.AllDisks = true
			f.Places = append(f.Places, Place{Spec: "/more", Writeback: true, Devices: []Device{{Device: vdb}}})
		}},
		{"rule-beneath", Note, AtDevice, func(f *Facts) { f.Places[0].Devices[0].Device = lvm }},
		{"rule-beneath", Note, Unknown, func(f *Facts) { f.Places[0].Devices[0].Device = crypt }},
		{"loop-buffered", Breaks, No, func(f *Facts) { f.Places[0].Devices[0].Device = loop }},
		{"partition", Note, AtDevice, func(f *Facts) {
			part := blkdev.Device{Number: blkdev.Number{Major: 254, Minor: 1}, Name: "vda1", Kind: blkdev.Partition, Beneath: []blkdev.Device{vda}}
			f.Places[0].Chain.Layers = []blkdev.Layer{{Devices: []blkdev.Device{part}}}
		}},
		{"limit-above", Note, AtDevice, func(f *Facts) {
			f.Group.Rules, f.Group.Above = nil, []Above{{"/", nil}, {"/up", []cgroupfs.Rule{rule1(vda, 1e6)}}}
			f.Places[0].Devices[0].Limit, f.Places[0].Devices[0].Above = wbps(1e6), wbps(1e6)
		}},
		{"parent-stricter", Note, AtDevice, func(f *Facts) { f.Group.Above = []Above{{"/", nil}, {"/up", []cgroupfs.Rule{rule1(vda, 1e6)}}} }},
		{"unit-differs", Hurts, AtDevice, func(f *Facts) {
			f.Group.Owner, f.Group.Unit = targets.Owner{Kind: "systemd", Name: "x.service", Unit: "x.service"}, &Unit{Name: "x.service"}
		}},
		{"", "", AtDevice, func(f *Facts) {
			f.Group.Owner, f.Group.Unit = targets.Owner{Kind: "systemd", Name: "x.service", Unit: "x.service"},
				&Unit{Name: "x.service", Limits: map[blkdev.Number][]Spelling{vda.Number: {{"/dev/vda", wbps(10e6)}, {"/data", wbps(10e6)}}}}
		}},
		{"record-lacks", Note, AtDevice, func(f *Facts) {
			f.Group.Record = &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect x"}
		}},
		{"record-differs", Hurts, AtDevice, func(f *Facts) { f.Group.Record = recordOf(vda, 5e6) }},
		{"record-differs", Hurts, NoLimit, func(f *Facts) {
			f.Group.Record, f.Group.Rules, f.Places[0].Devices[0].Limit = recordOf(vdb, 5e6), nil, limit.None.Overlay(limit.Limit{RBPS: limit.PerSecond(1e6)})
		}},
		{"record-empty", Note, AtDevice, func(f *Facts) { // the limit was named
			f.Group.Record, f.Group.Rules = &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect x"}, nil
		}},
		{"", "", AtDevice, func(f *Facts) { f.Group.Record = recordOf(vda, 10e6) }},
		{"", "", AtDevice, func(f *Facts) { // Docker's rule, in a scope that systemd keeps no limit for
			f.Group.Owner, f.Group.Unit = targets.Owner{Kind: "docker", Unit: "docker-x.scope"}, &Unit{Name: "docker-x.scope"}
		}},
		{"unit-differs", Hurts, AtDevice, func(f *Facts) {
			f.Group.Owner, f.Group.Unit = targets.Owner{Kind: "docker", Unit: "docker-x.scope"},
				&Unit{Name: "docker-x.scope", Limits: map[blkdev.Number][]Spelling{vda.Number: {{"/dev/vda", wbps(1e6)}}}}
		}},
		{"slow-drain", Hurts, Yes, func(f *Facts) {
			f.Group.Memory = Memory{Memory: cgroupfs.Memory{Max: 64 << 20}, MaxFile: "/sys/fs/cgroup/x/memory.max", Known: true}
			f.Places[0].Devices[0].BDI = &kernel.BDI{CanBeStrict: true}
		}},
		{"", "", Yes, func(f *Facts) {
			f.Group.Memory = Memory{Memory: cgroupfs.Memory{Max: 64 << 20}, MaxFile: "/sys/fs/cgroup/x/memory.max", Known: true}
			f.Places[0].Devices[0].BDI = &kernel.BDI{CanBeStrict: true, Strict: true, MaxBytes: 16 << 20}
		}},
		{"writer-runs-ahead", Note, AtDevice, func(f *Facts) { f.Dirty = &kernel.Dirty{Ratio: 20, LimitAt: 4 << 30} }},
		{"backlog", Note, AtDevice, func(f *Facts) { f.Group.Memory = Memory{Memory: cgroupfs.Memory{Dirty: 1 << 30}, Known: true} }},
		{"limit-below-slice", Hurts, AtDevice, func(f *Facts) { f.Places[0].Devices[0].Limit.WIOPS = limit.PerSecond(9) }},
		{"large-requests", Note, AtDevice, func(f *Facts) { f.Places[0].Devices[0].Queue.MaxSectors = 4 << 20 }},
		{"kernel-bug", Note, AtDevice, func(f *Facts) {
			f.Release, f.Places[0].Devices[0].Limit.WIOPS = kernel.Release{Major: 6, Minor: 12, Text: "6.12"}, limit.PerSecond(100)
		}},
		{"kernel-bug", Hurts, AtDevice, func(f *Facts) {
			f.Release, f.Places[0].Devices[0].Limit.WIOPS = kernel.Release{Major: 6, Minor: 1, Text: "6.1.176"}, limit.PerSecond(9)
		}},
		{"kernel-bug", Hurts, Unknown, func(f *Facts) { // more gets through than the limit
			f.Release, f.Places[0].Devices[0].Limit.WIOPS = kernel.Release{Major: 5, Minor: 10, Text: "5.10.0-30-amd64"}, limit.PerSecond(100)
		}},
		{"kernel-bug", Hurts, AtDevice, func(f *Facts) { // of reads
			f.Release, f.Places[0].Devices[0].Limit.RIOPS = kernel.Release{Major: 5, Minor: 10, Text: "5.10.0-30-amd64"}, limit.PerSecond(100)
		}},
		{"io-cost", Note, AtDevice, func(f *Facts) { f.Group.Cost = []Policy{{"io.cost.qos", vda.Number, "254:0 enable=1"}} }},
		{"io-latency", Note, AtDevice, func(f *Facts) { f.Group.Latency = []Policy{{"io.latency", vda.Number, "254:0 target=10"}} }},
		{"large-writeback", Note, AtDevice, func(f *Facts) { f.Places[0].Devices[0].Limit = limit.None.Overlay(wbps(1e6)) }},
		{"large-writeback", Note, AtDevice, func(f *Facts) { f.Places[0].FS.FSType = "xfs" }},
		{"cached", Note, AtDevice, func(f *Facts) { f.Places[0].File, f.Places[0].Size, f.Places[0].Cached = "/data/f", 200, 100 }},
		{"swap", Note, AtDevice, func(f *Facts) { f.Swaps = []SwapArea{{"/data/swapfile", []blkdev.Device{vda}}} }},
		{"v1-writeback", Breaks, No, onV1},
		{"root-rule", Note, AtDevice, func(f *Facts) { onV1(f); f.Group.RootRules = f.Group.Rules }},
		{"v1-writeback", Breaks, No, func(f *Facts) { onV1(f); f.Group.RootRules = []cgroupfs.Rule{rule1(vda, 500e6)} }},
		{"v1-writeback", Breaks, No, func(f *Facts) {
			onV1(f)
			f.Group.RootRules = []cgroupfs.Rule{{Device: vda.Number, Limit: limit.None.With(limit.WIOPS, limit.PerSecond(5))}}
		}},
		{"", "", NoLimit, func(f *Facts) { // of writes: nothing can pass by it
			onV1(f)
			f.Places[0].Devices[0].Limit = limit.None.With(limit.RBPS, limit.PerSecond(1e6))
		}},
		{"", "", NoLimit, func(f *Facts) {
			f.Places[0].FS.SuperOptions, f.Places[0].Writeback = "rw,data=journal", false
			f.Places[0].Devices[0].Limit = limit.None.With(limit.RBPS, limit.PerSecond(1e6))
		}},
		{"", "", NoLimit, func(f *Facts) {
			f.Places[0].Writeback, f.Places[0].WhyNot = false, "of a reason that no rule knows"
			f.Places[0].Devices[0].Limit = limit.None.With(limit.RBPS, limit.PerSecond(1e6))
		}},
		{"v1-flat", Hurts, AtDevice, func(f *Facts) {
			onV1(f)
			f.Group.RootRules, f.Group.Processes, f.Group.BelowV1 = f.Group.Rules, []int{1}, []place.Below{{Path: "/x/y", Processes: 3}}
		}},
		{"v1-flat", Breaks, No, func(f *Facts) {
			onV1(f)
			f.Group.RootRules, f.Group.BelowV1 = f.Group.Rules, []place.Below{{Path: "/x/y", Processes: 3}}
		}},
		{"v1-flat", Breaks, No, func(f *Facts) { // another place has its limit
			onV1(f)
			f.Group.Above = []Above{{"/up", []cgroupfs.Rule{rule1(vda, 1e6)}}}
			f.Places = append([]Place{{Spec: "/data", Devices: []Device{{Device: vda, Limit: limit.None}}}}, f.Places...)
			f.Places[1].Devices[0].Device, f.Group.Rules = vdb, []cgroupfs.Rule{rule1(vdb, 1e6)}
		}},
		{"limit-above", Note, AtDevice, func(f *Facts) { // and the group has no io of its own
			f.Group.Controllers, f.Group.Rules = []string{"memory"}, nil
			f.Group.Above = []Above{{"/", nil}, {"/up", []cgroupfs.Rule{rule1(vda, 10e6)}}}
			f.Places[0].Devices[0].Above = wbps(10e6)
		}},
		{"v1-flat", Breaks, No, func(f *Facts) {
			onV1(f)
			f.Group.Above, f.Group.Rules, f.Places[0].Devices[0].Limit = []Above{{"/", nil}, {"/up", f.Group.Rules}}, nil, limit.Limit{}
		}},
	} {
		f := good()
		c.change(&f)
		r := Judge(f)
		if c.code == "" {
			rest := slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Code == "escapes-not-held" })
			if len(rest) > 0 {
				t.Errorf("found %+v, want nothing", rest)
			}
			if got := buffered(r); got != c.buffered {
				t.Errorf("a buffered write is %q where nothing is found, want %q", got, c.buffered)
			}
			continue
		}
		found, ok := r.Find(c.code)
		if !ok || found.Severity != c.severity || found.Text == "" || len(found.Evidence) == 0 && c.code != "no-block-device" && c.code != "no-writeback" {
			t.Errorf("%s: %+v among %+v", c.code, found, r.Findings)
		}
		if got := buffered(r); got != c.buffered {
			t.Errorf("%s: a buffered write is %q, want %q", c.code, got, c.buffered)
		}
		for i, one := range r.Findings {
			if one.Number != i+1 || strings.ToLower(one.Code) != one.Code || !strings.HasSuffix(one.Text, ".") {
				t.Errorf("%s: finding %+v", c.code, one)
			}
		}
	}
}

// Only a group whose memory is small needs this host to write back early, too: what that
// changes, it changes for all.
func TestFixesOfWritersThatRunAhead(t *testing.T) {
	for code, c := range map[string]struct {
		memory uint64
		want   []string
	}{
		"slow-drain":        {64 << 20, []string{"strict_limit", "max_bytes", "min_bytes", "dirty_background_ratio", "dirty_expire_centisecs", "dirty_writeback_centisecs"}},
		"writer-runs-ahead": {0, []string{"strict_limit", "max_bytes", "min_bytes"}},
	} {
		f := good()
		f.Places[0].Devices[0].BDI = &kernel.BDI{Dir: "/sys/class/bdi/254:0", CanBeStrict: true}
		f.Dirty = &kernel.Dirty{Ratio: 20, LimitAt: 4 << 30}
		f.Group.Memory = Memory{Memory: cgroupfs.Memory{Max: c.memory}, MaxFile: "/sys/fs/cgroup/x/memory.max", Known: c.memory > 0}
		found, ok := Judge(f).Find(code)
		if !ok || len(found.Fixes) == 0 {
			t.Errorf("%s: %+v", code, found)
			continue
		}
		var files []string
		for _, line := range found.Fixes[0].Lines {
			files = append(files, path.Base(line[strings.Index(line, "> "):]))
		}
		if !slices.Equal(files, c.want) {
			t.Errorf("%s: writes %q, want %q", code, files, c.want)
		}
	}
}

// buffered is the answer for buffered writes at the first place.
func buffered(r Report) Held {
	i := slices.IndexFunc(r.Matrix, func(c Cell) bool { return c.Place == 0 && c.Path == load.Buffered && !c.Read })
	return r.Matrix[i].Held
}

// recordOf is what an owner keeps that has a write limit for one device.
func recordOf(d blkdev.Device, n uint64) *targets.Record {
	return &targets.Record{By: "Docker", Command: "docker", Source: "docker inspect x", Limits: []targets.Recorded{{Path: d.Node, Device: d.Number, Limit: wbps(n)}}}
}

// The fixes of a record that differs lead to the record's limit, whatever is in force.
func TestRecordIsPutIntoForce(t *testing.T) {
	f := good()
	f.Group.Rules = []cgroupfs.Rule{{Device: vda.Number, Limit: limit.None.Overlay(limit.Limit{WBPS: limit.PerSecond(10e6), RIOPS: limit.PerSecond(100)})}, rule1(vdb, 1e6)}
	f.Group.Record = recordOf(vda, 5e6)
	found, ok := Judge(f).Find("record-differs")
	if !ok || len(found.Evidence) != 2 || len(found.Fixes) != 3 {
		t.Fatalf("%+v", found)
	}
	if got, want := strings.Join(found.Fixes[2].Lines, "\n"), "weir set cgroup:/x --write 5000000 --read-iops max --on /dev/vda"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := found.Fixes[1].Text, "docker run --device-write-bps /dev/vda:10000000 --device-read-iops /dev/vda:100"; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// owned makes a file for each owner.
func owned(owners ...inode.Group) []inode.File {
	var files []inode.File
	for i, g := range owners {
		files = append(files, inode.File{Path: fmt.Sprintf("/data/%d", i), Inode: uint64(i), Owner: inode.Owner{State: inode.Owned, Memory: g, IO: g}})
	}
	return files
}

func onV1(f *Facts) {
	*f.IO = Mounted{Version: 1, At: "/sys/fs/cgroup/blkio", Controllers: []string{"blkio"}}
	f.Group.Version, f.Group.Controllers, f.Places[0].Writeback, f.Places[0].WhyNot = cgroupfs.V1, nil, false, "cgroup v1"
}

// What is not held has a finding that says why, in every cell.
func TestEveryNoHasAReason(t *testing.T) {
	f := good()
	onV1(&f)
	f.Places[0].FS.SuperOptions = "data=journal"
	f.Places = append(f.Places, Place{Spec: "/t", Err: &blkdev.NoBlockDeviceError{Path: "/t"}})
	for _, c := range Judge(f).Matrix {
		if c.Held == No && len(c.Findings) == 0 {
			t.Errorf("%+v", c)
		}
	}
}

func TestNoController(t *testing.T) {
	r := Judge(Facts{WhyNone: fault.Unsupported{Reason: "the kernel has no blkio controller", Remedy: "another kernel"}})
	if one, ok := r.Find("no-io-controller"); !ok || len(one.Fixes) != 1 || r.Group != nil || len(r.Matrix) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestRatesAreShownWithUnits(t *testing.T) {
	if got := Seconds(drainTime(64<<20, 1e6)); got != "67 s" {
		t.Errorf("64 MiB at 1 MB/s drain in %s", got)
	}
	if got := limit.FormatSize(64 << 20); got != "64 MiB" {
		t.Errorf("64 MiB are %s", got)
	}
}

// On v2, what a group leaves unbound the lowest limit above binds.
func TestBoundAbove(t *testing.T) {
	g := Group{Version: cgroupfs.V2, Above: []Above{{"/", nil}, {"/a", []cgroupfs.Rule{rule1(vda, 5e6)}}, {"/a/b", []cgroupfs.Rule{rule1(vda, 3e6), rule1(vdb, 1e6)}}}}
	if got := g.boundAbove(vda.Number, limit.None); got != wbps(3e6) {
		t.Errorf("without an own limit: %v", got)
	}
	if got := g.boundAbove(vda.Number, wbps(9e6)); !got.IsZero() {
		t.Errorf("with an own limit: %v", got)
	}
	g.Version = cgroupfs.V1
	if got := g.boundAbove(vda.Number, limit.None); !got.IsZero() {
		t.Errorf("on v1: %v", got)
	}
}
