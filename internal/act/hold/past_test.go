package hold

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// Devices on a disk, and on each other: systemd goes past both.
var (
	crypt  = blkdev.Number{Major: 254}
	volume = blkdev.Number{Major: 254, Minor: 1}
)

// onWay is what a unit's settings say of a device from which systemd goes on.
func onWay(path string, own bool, l limit.Limit, way ...blkdev.Number) systemd.PathLimit {
	return systemd.PathLimit{Path: path, Own: own, Devices: way, Limit: l}
}

// A name of a volume is no name for a limit of its disk, and a limit of a volume gets no name at all: systemd
// would set it on the disk. What systemd has on the disk under the volume's name stays as it is, and is told.
func TestNamesOfVolumes(t *testing.T) {
	lab.Unit(t)
	onVolume := onWay("/dev/block/254:1", false, writes(5), volume, sda)
	for name, c := range map[string]struct {
		dev    blkdev.Number
		has    []systemd.PathLimit
		lift   bool
		sets   []string
		drop   []string
		astray []string
		writes []Change
	}{
		"a volume":                       {dev: volume, writes: []Change{{volume, writes(9)}}},
		"a volume whose disk is limited": {dev: volume, has: []systemd.PathLimit{says("/dev/sda", false, writes(3))}, writes: []Change{{volume, writes(9)}}},
		"a volume whose disk is limited under its name": {dev: volume, has: []systemd.PathLimit{onVolume}, astray: []string{"/dev/block/254:1"}, writes: []Change{{volume, writes(9)}}},
		"a disk that is limited under its volume's name": {dev: sda, has: []systemd.PathLimit{onVolume},
			sets: []string{"IOWriteBandwidthMax=/dev/block/254:1 9", "IOWriteBandwidthMax=/dev/block/8:0 9"}, drop: []string{"/dev/block/254:1"}},
		"a disk that is limited under its volume's name, which lasts": {dev: sda, has: []systemd.PathLimit{onWay("/var", false, writes(5), volume, sda)},
			sets: []string{"IOWriteBandwidthMax=/var 9"}},
		"beside a name of the disk's that does not last": {dev: sda, has: []systemd.PathLimit{says("/dev/sda", false, writes(5)), onWay("/var", false, writes(5), volume, sda)},
			sets: []string{"IOWriteBandwidthMax=/dev/sda 9", "IOWriteBandwidthMax=/var 9"}, drop: []string{"/dev/sda"}},
		"beside a name of the disk's that lasts": {dev: sda, has: []systemd.PathLimit{onWay("/var", false, writes(5), volume, sda), says("/dev/disk/by-id/x", false, writes(5))},
			sets: []string{"IOWriteBandwidthMax=/var 9", "IOWriteBandwidthMax=/dev/disk/by-id/x 9"}, drop: []string{"/var"}},
		"in the unit's own file": {dev: sda, has: []systemd.PathLimit{onWay("/var", true, writes(5), volume, sda)}, sets: []string{"IOWriteBandwidthMax=/var 9"}},
		"lifted":                 {dev: sda, has: []systemd.PathLimit{onVolume}, lift: true, sets: []string{"IOWriteBandwidthMax=/dev/block/254:1 9"}},
		"a version of systemd that goes one step": {dev: crypt, has: []systemd.PathLimit{onWay("/var", false, writes(5), volume, crypt)},
			sets: []string{"IOWriteBandwidthMax=/var 9"}, writes: []Change{{crypt, writes(9)}}},
	} {
		var s spelling
		s.add(Plan{Past: []blkdev.Number{crypt, volume}, Lift: c.lift}, Change{c.dev, limit.Limit{WBPS: limit.PerSecond(9)}}, c.has, limit.None, "")
		var sets []string
		for _, one := range s.settings {
			for _, property := range systemd.IOLimitAt(one.Path, one.After) {
				sets = append(sets, property.String())
			}
		}
		if !slices.Equal(sets, c.sets) || !slices.Equal(s.drop, c.drop) || !slices.Equal(s.astray, c.astray) || !reflect.DeepEqual(s.written, c.writes) {
			t.Errorf("%s: set %q, forget %q, tell of %q, write %v", name, sets, s.drop, s.astray, s.written)
		}
	}
}

// A way of three devices ends at the second one or the last one, as systemd's version has it: the rules in
// force say where. If both have the rates, one of them may be weir's own, as a limit of LUKS is.
func TestWhereALongWayEnds(t *testing.T) {
	lab.Unit(t)
	p, _ := unitFixture(t)
	way := onWay("/var", false, writes(5), volume, crypt, sda)
	unknown := blkdev.Number{}
	const both = "8:0 rbps=max wbps=5 riops=max wiops=max\n254:0 rbps=max wbps=5 riops=max wiops=max\n"
	lifts := func(devices ...blkdev.Number) (all []Change) {
		for _, dev := range devices {
			all = append(all, Change{dev, limit.Limit{WBPS: limit.Unlimited}})
		}
		return all
	}
	for _, c := range []struct {
		rules   string
		want    blkdev.Number
		changes []Change // that lift; else one that sets
	}{
		{"254:0 rbps=max wbps=5 riops=max wiops=max\n", crypt, nil},
		{"254:0 rbps=max wbps=6 riops=max wiops=max\n", sda, nil},
		{"8:0 rbps=max wbps=5 riops=max wiops=max\n", sda, nil},
		{"8:0 rbps=max wbps=6 riops=max wiops=max\n254:0 rbps=max wbps=5 riops=max wiops=max\n", crypt, nil},
		{"8:0 rbps=max wbps=5 riops=max wiops=max\n254:0 rbps=max wbps=6 riops=max wiops=max\n", sda, nil},
		{both, unknown, nil},
		{both, unknown, lifts(crypt)},
		{both, unknown, lifts(sda)},
		{both, sda, lifts(crypt, sda)},
	} {
		if err := os.WriteFile(p.Group.File("io.max"), []byte(c.rules), 0o644); err != nil {
			t.Fatal(err)
		}
		p.Lift, p.Changes = c.changes != nil, c.changes
		if on, known := p.settle([]systemd.PathLimit{way})[0].On(); known != (c.want != unknown) || on != c.want {
			t.Errorf("%q, lift %v: %s, %t", c.rules, c.changes, on, known)
		}
	}
	another := says("/dev/sda", false, writes(6))
	if err := os.WriteFile(p.Group.File("io.max"), []byte("8:0 rbps=max wbps=6 riops=max wiops=max\n254:0 rbps=max wbps=5 riops=max wiops=max\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.Lift, p.Changes = false, nil
	if on, known := p.settle([]systemd.PathLimit{onWay("/", false, writes(7), volume, crypt, sda), way})[1].On(); !known || on != crypt {
		t.Errorf("another long way is no setting of the disk's: %s, %t", on, known)
	}
	if on, known := p.settle([]systemd.PathLimit{another, way})[1].On(); known {
		t.Errorf("the disk has another limit by its own name, which says nothing of the way: %s", on)
	}
	if len(way.Devices) != 3 {
		t.Error("the way itself has changed")
	}
}

// Where LUKS has the same limit as the disk below, which systemd limits under a volume's name, setting or lifting
// that of LUKS asks systemd for nothing of that name, and so leaves the disk's limit alone. It is told.
func TestALimitOfLUKSLeavesItsDiskAlone(t *testing.T) {
	lab.Unit(t)
	for _, lift := range []bool{false, true} {
		p, _ := unitFixture(t)
		if err := os.WriteFile(p.Group.File("io.max"), []byte("8:0 rbps=max wbps=5 riops=max wiops=max\n254:0 rbps=max wbps=5 riops=max wiops=max\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p.Past, p.Lift = []blkdev.Number{crypt}, lift
		p.Changes = []Change{{crypt, writes(9)}}
		if lift {
			p.Changes = []Change{{crypt, limit.Limit{WBPS: limit.Unlimited}}}
		}
		s, err := p.spell(t.Context(), &manager{limits: []systemd.PathLimit{onWay("/var", false, writes(5), volume, crypt, sda)}})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.settings) != 0 || len(s.drop) != 0 || !reflect.DeepEqual(s.written, p.Changes) {
			t.Errorf("lift %t: asks systemd for %v, has it forget %q, writes %v", lift, s.settings, s.drop, s.written)
		}
		var told []string
		s.tell(Plan{Unit: "x.service", Note: func(text string) { told = append(told, text) }})
		if len(told) != 1 || !strings.Contains(told[0], "/var") || !strings.Contains(told[0], "cannot tell on which") {
			t.Errorf("lift %t: told %q", lift, told)
		}
	}
}

// weir writes a volume's limit after systemd has given the unit the io controller, and takes its rule back if the
// change fails. What systemd has on the disk under the volume's name is told.
func TestAVolumesRuleIsWeirs(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	p.Changes, p.Past = []Change{{volume, limit.Limit{WBPS: limit.PerSecond(7)}}}, []blkdev.Number{volume}
	held := "8:0 rbps=max wbps=5 riops=max wiops=max\n"
	m := &manager{file: p.Group.File("io.max"), text: held, limits: []systemd.PathLimit{onWay("/dev/mapper/vg-x", false, writes(5), volume, sda)}}
	var told []string
	p.Note = func(text string) { told = append(told, text) }
	if err := p.applyUnit(t.Context(), dir, m.dial); !fault.IsUnsupported(err) {
		t.Errorf("applyUnit: %v; want that the fixture is not written", err)
	}
	if want := [][]string{{"IOAccounting=true"}}; !reflect.DeepEqual(m.sets, want) {
		t.Errorf("asked systemd for %q, want %q, and nothing to take back", m.sets, want)
	}
	if text, err := os.ReadFile(m.file); err != nil || string(text) != held {
		t.Errorf("in force are %q, %v", text, err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "/dev/mapper/vg-x") {
		t.Errorf("told %q", told)
	}
	if n := records(t, dir); n != 0 {
		t.Errorf("%d records left", n)
	}
}
