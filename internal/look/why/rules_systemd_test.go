package why

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// A limit that systemd may end is told, with the command that has it stay.
func TestALimitThatSystemdMayLift(t *testing.T) {
	for version, says := range map[cgroupfs.Version]string{cgroupfs.V2: "io controller", cgroupfs.V1: "moves processes out"} {
		f := good()
		f.Group.Version, f.Group.Loose = version, &Loose{"system.slice", "system-weir.slice"}
		found, ok := Judge(f).Find("systemd-may-lift")
		if !ok || found.Severity != Hurts || !strings.Contains(found.Text, says) || !strings.Contains(found.Text, "in system.slice") {
			t.Fatalf("v%d: %+v", version, found)
		}
		if got, want := found.Fixes[0].Lines, "weir set cgroup:/x --write 10000000 --on /dev/vda"; len(got) != 1 || got[0] != want {
			t.Errorf("v%d: the fix is %q, want %q", version, got, want)
		}
		if got, want := found.Evidence[len(found.Evidence)-1].File, "systemctl is-active system-weir.slice"; got != want {
			t.Errorf("v%d: the evidence is %q, want %q", version, got, want)
		}
	}
}

// systemd keeps no limits on cgroup v1. A limit that was just set is no fault for that: the fix has weir set it again,
// and what weir sets again is not spoken of.
func TestALimitOfAUnitOnV1(t *testing.T) {
	of := func(change func(*Group)) Report {
		f := ofUnit(nil)
		f.Group.Version = cgroupfs.V1
		change(&f.Group)
		return Judge(f)
	}
	found, is := of(func(*Group) {}).Find("unit-differs")
	if !is || found.Severity != Note || len(found.Fixes) != 1 || !slices.Equal(found.Fixes[0].Lines, []string{"weir set unit:x.service --write 10000000 --on 254:0 --persist"}) {
		t.Errorf("%+v", found)
	}
	if found, is = of(func(g *Group) { g.Owner.Unit = "x.slice" }).Find("unit-differs"); !is || len(found.Fixes) != 0 {
		t.Errorf("a slice starts no weir: %+v", found)
	}
	if found, is = of(func(g *Group) { g.Kept = Kept{File: "/x", Rules: []cgroupfs.Rule{rule1(vdb, 10e6)}} }).Find("unit-differs"); !is {
		t.Error("weir keeps a limit on another device, and nothing is said")
	}
	if found, is = of(func(g *Group) { g.Kept = Kept{File: "/x", Rules: []cgroupfs.Rule{rule1(vda, 4e6)}} }).Find("record-differs"); !is || !strings.HasPrefix(found.Text, "weir keeps another") {
		t.Errorf("weir keeps another number: %+v", found)
	}
	for name, change := range map[string]func(*Group){
		"weir keeps it":   func(g *Group) { g.Kept = Kept{File: "/etc/systemd/system/x.service.d/weir.conf", Rules: g.Rules} },
		"no limit":        func(g *Group) { g.Rules = []cgroupfs.Rule{{Device: vda.Number, Limit: limit.None}} },
		"made by another": func(g *Group) { g.Owner.Kind = "docker" },
		"a scope":         func(g *Group) { g.Owner.Unit = "weir-x.scope" },
	} {
		if found, is := of(change).Find("unit-differs"); is {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func ofUnit(limits map[blkdev.Number][]Spelling) Facts {
	f := good()
	f.Group.Version = cgroupfs.V2
	f.Group.Owner = targets.Owner{Kind: "systemd", Name: "x.service", Unit: "x.service"}
	f.Group.Unit = &Unit{Name: "x.service", Limits: limits}
	return f
}

// Two names of a device that say different limits undo each other; that is told with what
// each says, what is in force, and the line that sets all rates under one name.
func TestTwoNamesOfOneDevice(t *testing.T) {
	reads := limit.None.With(limit.RBPS, limit.PerSecond(3e6))
	f := ofUnit(map[blkdev.Number][]Spelling{vda.Number: {{"/dev/block/252:0", wbps(10e6)}, {"/dev/vda", reads}}})
	report := Judge(f)
	found, ok := report.Find("unit-conflict")
	if !ok || found.Severity != Hurts {
		t.Fatalf("%+v", found)
	}
	if _, also := report.Find("unit-differs"); also {
		t.Error("the same is told twice")
	}
	for _, want := range []string{"/dev/block/252:0: ", "/dev/vda: "} {
		if !slices.ContainsFunc(found.Evidence, func(e Evidence) bool { return strings.HasPrefix(e.Value, want) }) {
			t.Errorf("no evidence begins with %q: %+v", want, found.Evidence)
		}
	}
	if got := found.Fixes[0].Lines[0]; !strings.Contains(got, "--read 3000000") || !strings.Contains(got, "--write 10000000") {
		t.Errorf("the fix is %q", got)
	}
}

// A limit of a device that systemd goes past is weir's own: systemd cannot keep it, and nothing is wrong with it.
// One that systemd keeps there otherwise is told as ever.
func TestALimitThatSystemdCannotKeep(t *testing.T) {
	f := ofUnit(nil)
	f.Group.Unit.Past = []blkdev.Number{vda.Number}
	found, ok := Judge(f).Find("unit-differs")
	if !ok || found.Severity != Note || !strings.Contains(found.Text, "cannot limit 254:0 itself") || len(found.Fixes) != 0 {
		t.Errorf("%+v", found)
	}
	f = ofUnit(map[blkdev.Number][]Spelling{vda.Number: {{"/dev/vda", wbps(1e6)}}})
	f.Group.Unit.Past = []blkdev.Number{vda.Number}
	if found, ok = Judge(f).Find("unit-differs"); !ok || found.Severity != Hurts {
		t.Errorf("%+v", found)
	}
}

// A scope has no restart, so none is spoken of: nothing is wrong with what weir run writes there itself, and any
// other limit that systemd does not know is told as nobody's.
func TestAScopeHasNoRestart(t *testing.T) {
	of := func(past ...blkdev.Number) (Finding, bool) {
		f := ofUnit(nil)
		f.Group.Owner.Unit, f.Group.Unit.Name, f.Group.Unit.Past = "weir-x.scope", "weir-x.scope", past
		return Judge(f).Find("unit-differs")
	}
	if found, is := of(vda.Number); is {
		t.Errorf("a volume: %+v", found)
	}
	if found, is := of(); !is || found.Severity != Hurts || strings.Contains(found.Text, "restart") || len(found.Fixes) != 2 {
		t.Errorf("a disk: %+v", found)
	}
}

// What systemd does not keep any more and is still in force is nobody's: the way out is to
// end it.
func TestALimitThatNobodyKeeps(t *testing.T) {
	found, ok := Judge(ofUnit(nil)).Find("unit-differs")
	if !ok || !strings.Contains(found.Text, "nobody keeps") || !strings.Contains(found.Text, "a restart of the unit removes it") || strings.Contains(found.Text, "replace the one in force") {
		t.Fatalf("%+v", found)
	}
	if len(found.Fixes) != 2 || !strings.HasPrefix(found.Fixes[0].Lines[0], "weir clear ") || !strings.HasPrefix(found.Fixes[1].Lines[0], "weir set ") {
		t.Errorf("fixes %+v", found.Fixes)
	}
}
