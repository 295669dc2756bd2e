package hold

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

func TestSteps(t *testing.T) {
	lab.Unit(t)
	g := fixture(t, cgroupfs.V2, nil)
	sda, sdb := blkdev.Number{Major: 8}, blkdev.Number{Major: 8, Minor: 16}
	p := Plan{Group: g, Changes: []Change{
		{sda, limit.Limit{RBPS: limit.PerSecond(1), WIOPS: limit.Unlimited}},
		{sdb, limit.Limit{WBPS: limit.PerSecond(2)}},
		{sdb, limit.Limit{}},
	}}
	want := []Step{{File: g.File("io.max"), Line: "8:0 rbps=1 wiops=max"}, {File: g.File("io.max"), Line: "8:16 wbps=2"}}
	if got := p.Steps(); !reflect.DeepEqual(got, want) {
		t.Errorf("Steps = %+v, want %+v", got, want)
	}
	p.Unit = "x.service"
	want = []Step{{Unit: "x.service", Property: "IOReadBandwidthMax=/dev/block/8:0 1"}, {Unit: "x.service", Property: "IOWriteIOPSMax=/dev/block/8:0 infinity"},
		{Unit: "x.service", Property: "IOWriteBandwidthMax=/dev/block/8:16 2"}}
	if got := p.Steps(); !reflect.DeepEqual(got, want) {
		t.Errorf("Steps of a unit = %+v, want %+v", got, want)
	}
}

// A dry run that cannot ask systemd, as of a copy of a host, has the lines of a volume, which weir writes itself. What
// is known to be in force already is not written.
func TestStepsOfAVolumeWithoutSystemd(t *testing.T) {
	lab.Unit(t)
	set, lift := limit.Limit{WBPS: limit.PerSecond(7)}, limit.Limit{WBPS: limit.Unlimited}
	const accounting = "IOAccounting=true"
	for _, c := range []struct {
		name, rules string
		asked       limit.Limit
		property    string
		line        string
	}{
		{"another limit", "8:0 rbps=3 wbps=5 riops=max wiops=max\n", set, accounting, "8:0 rbps=3 wbps=7 riops=max wiops=max"},
		{"none", "8:16 rbps=3 wbps=5 riops=max wiops=max\n", set, accounting, "8:0 rbps=max wbps=7 riops=max wiops=max"},
		{"none that can be read", "", set, accounting, "8:0 rbps=max wbps=7 riops=max wiops=max"},
		{"lifted", "8:0 rbps=3 wbps=5 riops=max wiops=max\n", lift, "", "8:0 wbps=max"},
		{"lifted, none that can be read", "", lift, "", "8:0 wbps=max"},
		{"in force", "8:0 rbps=max wbps=7 riops=max wiops=max\n", set, accounting, ""},
	} {
		files := map[string]string{cgrouptest.V2Dir + "/x/cgroup.procs": ""}
		if c.rules != "" {
			files[cgrouptest.V2Dir+"/x/io.max"] = c.rules
		}
		g := fixture(t, cgroupfs.V2, files)
		p := Plan{Group: g, Unit: "x.service", Past: []blkdev.Number{sda}, Changes: []Change{{sda, c.asked}}, Lift: c.asked == lift}
		var want []Step
		if c.property != "" {
			want = append(want, Step{Unit: "x.service", Property: c.property})
		}
		if c.line != "" {
			want = append(want, Step{File: g.File("io.max"), Line: c.line})
		}
		holder := Holder{systemd: func(context.Context) (units, error) {
			t.Error("asked systemd")
			return nil, errors.New("not here")
		}}
		for _, got := range [][]Step{p.Steps(), holder.Steps(t.Context(), p)} {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v, want %+v", c.name, got, want)
			}
		}
	}
}

func TestApplyAsksNobodyWhereNothingCanBeWritten(t *testing.T) {
	lab.Unit(t)
	g := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/x/io.max": ""})
	h := Holder{Connect: func(context.Context) (*systemd.Conn, error) {
		t.Error("asked systemd")
		return nil, errors.New("not here")
	}}
	p := Plan{Group: g, Unit: "x.service", Changes: []Change{{blkdev.Number{Major: 8}, limit.Limit{RBPS: limit.PerSecond(1)}}}}
	if err := h.Apply(t.Context(), p); !fault.IsUnsupported(err) {
		t.Errorf("Apply on a fixture: %v", err)
	}
}

// What is in force already is not written again where a plan says so.
func TestWhatIsInForceIsKept(t *testing.T) {
	lab.Unit(t)
	change := []Change{{sda, limit.Limit{WBPS: limit.PerSecond(7), RIOPS: limit.PerSecond(9)}}}
	for text, want := range map[string]int{"": 1, "8:0 rbps=max wbps=7 riops=9 wiops=max\n": 0, "8:0 rbps=3 wbps=7 riops=9 wiops=4\n": 0, "8:0 rbps=max wbps=7 riops=8 wiops=max\n": 1} {
		for _, keep := range []bool{false, true} {
			h := cgrouptest.New(t, cgroupfs.V2, map[string]string{cgrouptest.V2Dir + "/x/io.max": text})
			writes := 0
			err := h.FS.Rehearse(func(file, line string) error {
				writes++
				return os.WriteFile(file, []byte(kept(line)), 0o644)
			})
			if err != nil {
				t.Fatal(err)
			}
			p := Plan{Group: h.Group("/x"), Changes: change, Keep: keep}
			if err := (Holder{State: state.At(filepath.Join(t.TempDir(), "host"))}).Apply(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if now, err := p.Group.Rule(sda); err != nil || now.Overlay(change[0].Limit) != now || keep && writes != want || !keep && writes != 1 {
				t.Errorf("%q, keep %v: %d writes, %v, %v", text, keep, writes, now, err)
			}
			if len(p.Changes) != 1 {
				t.Errorf("the plan has changed: %+v", p)
			}
		}
	}
}
