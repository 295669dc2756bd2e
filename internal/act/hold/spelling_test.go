package hold

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// says is what a unit's settings say of sda under a name.
func says(path string, own bool, l limit.Limit) systemd.PathLimit {
	return systemd.PathLimit{Path: path, Own: own, Devices: []blkdev.Number{sda}, Limit: l}
}

func reads(rbps uint64) limit.Limit { return limit.None.With(limit.RBPS, limit.PerSecond(rbps)) }

// Whatever names systemd has a device under, all of them say the same of all four rates
// afterwards, and what nobody named stays.
func TestARateThatIsNotNamedStays(t *testing.T) {
	lab.Unit(t)
	for name, c := range map[string]struct {
		has  []systemd.PathLimit
		now  limit.Limit // in force
		set  limit.Limit
		sets []string
		drop []string
	}{
		"another rate, under another name that took it out of force": {
			has:  []systemd.PathLimit{says("/dev/block/8:0", false, writes(10)), says("/dev/sda", false, reads(3))},
			now:  reads(3),
			set:  limit.Limit{RBPS: limit.PerSecond(7)},
			sets: []string{"IOReadBandwidthMax=/dev/block/8:0 7", "IOReadBandwidthMax=/dev/sda 7", "IOWriteBandwidthMax=/dev/sda 10"},
			drop: []string{"/dev/sda"},
		},
		"a link by the disk's identity is kept before a name of the kernel's": {
			has:  []systemd.PathLimit{says("/dev/sda", false, writes(10)), says("/dev/disk/by-id/x", false, reads(3))},
			now:  writes(10),
			set:  limit.Limit{RBPS: limit.PerSecond(7)},
			sets: []string{"IOReadBandwidthMax=/dev/sda 7", "IOReadBandwidthMax=/dev/disk/by-id/x 7", "IOWriteBandwidthMax=/dev/disk/by-id/x 10"},
			drop: []string{"/dev/sda"},
		},
		"what a file of the unit's has stays": {
			has:  []systemd.PathLimit{says("/data", false, writes(10)), says("/dev/sda", true, reads(3))},
			now:  reads(3),
			set:  limit.Limit{WBPS: limit.PerSecond(9)},
			sets: []string{"IOReadBandwidthMax=/data 3", "IOWriteBandwidthMax=/data 9", "IOWriteBandwidthMax=/dev/sda 9"},
			drop: []string{"/data"},
		},
		"two names in files of the unit's both stay": {
			has:  []systemd.PathLimit{says("/data", true, writes(10)), says("/dev/sda", true, reads(3))},
			now:  reads(3),
			set:  limit.Limit{WBPS: limit.PerSecond(9)},
			sets: []string{"IOReadBandwidthMax=/data 3", "IOWriteBandwidthMax=/data 9", "IOWriteBandwidthMax=/dev/sda 9"},
		},
		"a rule that is in force and that systemd does not keep": {
			now:  writes(10),
			set:  limit.Limit{RBPS: limit.PerSecond(7)},
			sets: []string{"IOReadBandwidthMax=/dev/block/8:0 7", "IOWriteBandwidthMax=/dev/block/8:0 10"},
		},
		"one name and nothing to add": {
			has:  []systemd.PathLimit{says("/dev/sda", false, writes(10))},
			now:  writes(10),
			set:  limit.Limit{WBPS: limit.PerSecond(9)},
			sets: []string{"IOWriteBandwidthMax=/dev/sda 9"},
		},
		"a rate that is lifted is lifted under each name": {
			has:  []systemd.PathLimit{says("/dev/block/8:0", false, writes(10)), says("/dev/sda", false, reads(3))},
			now:  reads(3),
			set:  limit.Limit{RBPS: limit.Unlimited},
			sets: []string{"IOReadBandwidthMax=/dev/block/8:0 infinity", "IOReadBandwidthMax=/dev/sda infinity", "IOWriteBandwidthMax=/dev/sda 10"},
			drop: []string{"/dev/sda"},
		},
	} {
		var s spelling
		s.add(Plan{}, Change{sda, c.set}, c.has, c.now, "")
		sets := sent(s)
		if !reflect.DeepEqual(sets, c.sets) || !slices.Equal(s.drop, c.drop) {
			t.Errorf("%s: set %q and forget %q, want %q and %q", name, sets, s.drop, c.sets, c.drop)
		}
	}
}

// sent is what systemd is asked to set.
func sent(s spelling) (sets []string) {
	for _, one := range s.settings {
		for _, property := range systemd.IOLimitAt(one.Path, one.After) {
			sets = append(sets, property.String())
		}
	}
	return sets
}

// A change until the next boot has systemd forget no name if it keeps a limit over boots: that limit is in force
// again after the boot, and not before. A change for good takes the limit over.
func TestAKeptLimitStaysKept(t *testing.T) {
	lab.Unit(t)
	kept := func(l systemd.PathLimit) systemd.PathLimit {
		l.Kept = true
		return l
	}
	for name, c := range map[string]struct {
		has     []systemd.PathLimit
		persist bool
		sets    []string
		drop    []string
	}{
		"two names that last": {has: []systemd.PathLimit{says("/dev/disk/by-id/x", false, writes(5)), kept(says("/data", false, writes(5)))},
			sets: []string{"IOWriteBandwidthMax=/dev/disk/by-id/x 9", "IOWriteBandwidthMax=/data 9"}},
		"beside a name in the unit's own file": {has: []systemd.PathLimit{says("/data", true, writes(5)), kept(says("/dev/sda", false, writes(5)))},
			sets: []string{"IOWriteBandwidthMax=/data 9", "IOWriteBandwidthMax=/dev/sda 9"}},
		"under the name that stays: a reload would bring it back": {has: []systemd.PathLimit{kept(says("/data", false, writes(5))), says("/dev/sda", false, writes(5))},
			sets: []string{"IOWriteBandwidthMax=/data 9", "IOWriteBandwidthMax=/dev/sda 9"}},
		"under a volume's name": {has: []systemd.PathLimit{kept(onWay("/dev/dm-1", false, writes(5), volume, sda))},
			sets: []string{"IOWriteBandwidthMax=/dev/dm-1 9", "IOWriteBandwidthMax=/dev/block/8:0 9"}},
		"for good": {has: []systemd.PathLimit{says("/dev/disk/by-id/x", false, writes(5)), kept(says("/data", false, writes(5)))}, persist: true,
			sets: []string{"IOWriteBandwidthMax=/dev/disk/by-id/x 9", "IOWriteBandwidthMax=/data 9"}, drop: []string{"/data"}},
	} {
		var s spelling
		s.add(Plan{Persist: c.persist}, Change{sda, limit.Limit{WBPS: limit.PerSecond(9)}}, c.has, writes(5), "")
		sets := sent(s)
		if !slices.Equal(sets, c.sets) || !slices.Equal(s.drop, c.drop) {
			t.Errorf("%s: set %q and forget %q, want %q and %q", name, sets, s.drop, c.sets, c.drop)
		}
	}
}

// What systemd forgets is told as what it is: another name of the disk, or the name of a volume on it.
func TestForgottenNamesAreToldAsWhatTheyAre(t *testing.T) {
	lab.Unit(t)
	var s spelling
	s.add(Plan{}, Change{sda, limit.Limit{WBPS: limit.PerSecond(9)}},
		[]systemd.PathLimit{says("/dev/disk/by-id/x", false, writes(5)), says("/data", false, writes(5)), onWay("/var", false, writes(5), volume, sda)}, writes(5), "")
	var told []string
	s.tell(Plan{Unit: "x.service", Note: func(text string) { told = append(told, text) }})
	if len(told) != 2 || !strings.Contains(told[0], "/data, a second name of the same device;") || !strings.Contains(told[1], "/var, but sets them on the device below;") {
		t.Errorf("told %q", told)
	}
}

// Who spelled a device otherwise is told before that is replaced, and what is kept over
// boots has a name that lasts.
func TestOtherNamesAreToldBeforeTheyAreReplaced(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	m := &manager{file: p.Group.File("io.max"), text: "8:0 rbps=3 wbps=7 riops=9 wiops=max\n",
		limits: []systemd.PathLimit{says("/dev/sda", false, reads(3))}}
	var told []string
	p.Persist = true
	p.Note = func(text string) {
		if len(m.sets) > 0 {
			t.Errorf("told after systemd was asked for %q", m.sets)
		}
		told = append(told, text)
	}
	if err := p.applyUnit(t.Context(), dir, m.dial); err != nil {
		t.Fatal(err)
	}
	const id = "/dev/disk/by-id/disk-8:0"
	want := [][]string{
		{"persist", "IOWriteBandwidthMax=/dev/sda 7", "IOReadIOPSMax=/dev/sda 9", "IOWriteBandwidthMax=" + id + " 7", "IOReadIOPSMax=" + id + " 9"},
		{"IOReadBandwidthMax=" + id + " 3"},
		{"forget", "/dev/sda"},
	}
	if !reflect.DeepEqual(m.sets, want) {
		t.Errorf("asked systemd for %q, want %q", m.sets, want)
	}
	if len(told) != 1 || !strings.Contains(told[0], "/dev/sda") {
		t.Errorf("told %q", told)
	}
}

// A change that is taken back gives a name that systemd has forgotten its limit again.
func TestAForgottenNameIsTakenBack(t *testing.T) {
	lab.Unit(t)
	before, after := reads(5e6), reads(10e6)
	j := journal{
		Settings: []journalSetting{{"/dev/vda", turn{limit.None, after}}, {"254:0", turn{before, after}}},
		Dropped:  []journalSetting{{"254:0", turn{Before: before}}},
	}
	for name, c := range map[string]struct{ now, want []systemd.PathLimit }{
		"it was forgotten": {
			[]systemd.PathLimit{{Path: "/dev/vda", Limit: after}},
			[]systemd.PathLimit{{Path: "254:0", Limit: before}, {Path: "/dev/vda", Limit: limit.Limit{RBPS: limit.Unlimited}}},
		},
		"it was not": {
			[]systemd.PathLimit{{Path: "/dev/vda", Limit: after}, {Path: "254:0", Limit: after}},
			[]systemd.PathLimit{{Path: "/dev/vda", Limit: limit.Limit{RBPS: limit.Unlimited}}, {Path: "254:0", Limit: limit.Limit{RBPS: limit.PerSecond(5e6)}}},
		},
	} {
		var got []systemd.PathLimit
		for path, back := range j.backOf(c.now) {
			got = append(got, systemd.PathLimit{Path: path, Limit: back})
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
