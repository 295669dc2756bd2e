package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/lab"
)

// aReading has all that a reading can have.
func aReading() *watch.Snapshot {
	disk, lv := blkdev.Number{Major: 8}, blkdev.Number{Major: 253, Minor: 1}
	rule := limit.None.With(limit.WBPS, limit.PerSecond(10e6)).With(limit.RIOPS, limit.PerSecond(70))
	expected := &place.Expected{Placed: place.Placed{Device: blkdev.Device{Number: lv, Node: "/dev/dm-1"}, Limit: rule}, Foreign: &place.By{Mechanism: place.Pacer},
		Expectation: place.Expectation{Direct: place.By{Mechanism: place.Throttle}, Sync: place.By{Mechanism: place.Throttle, Why: "x"}, Buffered: place.By{Ahead: true, Why: "y"}, Mapped: place.By{Mechanism: place.Writeback}, Read: place.By{Mechanism: place.Throttle}}}
	return &watch.Snapshot{At: time.Unix(1e9, 123456789).UTC(), Window: 1234567891, Version: cgroupfs.V2, Watched: 12, Unread: 1, Unreadable: errors.New("no"),
		Pressure: &watch.Pressure{Total: cgroupfs.Pressure{Some: 753812345 * time.Microsecond, Full: 3}, Some: 12.25, Full: 1.0 / 3, Known: true},
		Disks:    []watch.Disk{{Number: lv, Node: "/dev/dm-1", Below: []blkdev.Number{disk}, Total: blkdev.Activity{Counters: blkdev.Counters{Reads: 1, WrittenBytes: math.MaxUint64}, InFlight: 3}, Rates: &watch.Rates{RBPS: 1.0 / 3}, Use: 87.5, Queue: 0.1}},
		Groups: []*watch.Group{
			{Path: "/a", Target: "docker:web", Owner: targets.Owner{Kind: "docker", Name: "3f"}, Pressure: &watch.Pressure{}, Memory: &watch.Memory{Dirty: 5, Writeback: 2},
				Paced: &watch.Paced{WBPS: 7, Escapes: true, Missed: "m"}, Paused: &watch.Paused{Total: 12310 * time.Millisecond, Share: 100.0 / 7, Known: true},
				Devices: []watch.Device{
					{Number: disk, Node: "/dev/sda", Counted: true, Total: cgroupfs.Stat{Device: disk, ReadBytes: 1, Writes: 1 << 60}, Rates: &watch.Rates{WBPS: 1e7 / 3}},
					{Number: lv, Node: "/dev/dm-1", Below: []blkdev.Number{disk}, Limit: rule, Expected: expected}}},
			{Path: "/b\xff\n", Target: "cgroup:/b\xff\n", Devices: []watch.Device{{Number: disk, Limit: limit.None.With(limit.RBPS, limit.Unlimited)}}}}}
}

// through is a value through JSON.
func through[T any](t *testing.T, v T) (back T) {
	t.Helper()
	text, err := rawtext.Marshal(v)
	if err == nil {
		err = rawtext.Unmarshal(text, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// What was made of a reading is read as the same reading, to the last digit.
func TestReadingsComeBack(t *testing.T) {
	lab.Unit(t)
	want := aReading()
	doc := through(t, TopOf(want, nil, TopBeside{}))
	got, err := doc.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range doc.Groups {
		got.Groups = append(got.Groups, g.Group())
	}
	if fmt.Sprint(got.Unreadable) != fmt.Sprint(want.Unreadable) {
		t.Errorf("%v", got.Unreadable)
	}
	got.Unreadable, want.Unreadable = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v\n%+v", got, want)
		for i := range want.Groups {
			t.Errorf("\n%+v\n%+v", *got.Groups[i], *want.Groups[i])
		}
	}
	for i, g := range want.Groups {
		for j := range g.Devices {
			if e := g.Devices[j].Expected; e != nil && !slices.Equal(e.Lines(), got.Groups[i].Devices[j].Expected.Lines()) {
				t.Errorf("%q", got.Groups[i].Devices[j].Expected.Lines())
			}
		}
	}
}

// So is what was measured.
func TestMeasurementsComeBack(t *testing.T) {
	lab.Unit(t)
	at := time.Unix(1e9, 5).UTC()
	want := held.Verdict{State: held.NotHeld, Since: at, Limits: []held.Limit{
		{Device: blkdev.Number{Major: 8}, Node: "/dev/sda", Key: limit.WIOPS, PerSec: 90, State: held.NotHeld, Since: at, Rate: 200.0 / 3, From: at, To: at.Add(time.Second)},
		{Device: blkdev.Number{Major: 8}, Node: "/dev/sda", Key: limit.RBPS, PerSec: 9, State: held.NotTold, Why: "why"}}}
	if got := through(t, HeldOf(agent.Held{Verdict: want})).Verdict(); !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v\n%+v", got, want)
	}
	if got := (AgentHeld{State: "well-held", Limits: []AgentLimit{{Rate: "xbps"}}}).Verdict(); got.State != held.NotTold || len(got.Limits) != 0 {
		t.Errorf("of a newer weird: %+v", got)
	}
}

// Figures that no weird writes are none that a view could not show.
func TestImpossibleFigures(t *testing.T) {
	lab.Unit(t)
	bad := -1e300
	most := math.MaxFloat64
	s, err := (Top{Version: 1, WindowSeconds: most, Watched: -1, Unread: -2, Pressure: &TopPressure{SomeSeconds: most, FullPercent: &bad, SomePercent: &bad}, Disks: []TopDisk{{Rates: &watch.Rates{RBPS: bad, WBPS: most}, UsePercent: most, Queue: bad}}}).Snapshot()
	if err != nil || s.Window < 0 || s.Watched != 0 || s.Unread != 0 || s.Pressure.Total.Some < 0 || s.Pressure.Some != 0 || s.Disks[0].Use != 100 || s.Disks[0].Queue != 0 || s.Disks[0].Rates.RBPS != 0 || s.Disks[0].Rates.WBPS != figureMost {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := (Top{Version: 3}).Snapshot(); err == nil {
		t.Error("cgroup v3")
	}
}

// Who has a reading is told what is other, in parts, and has the next one then.
func TestTopEvents(t *testing.T) {
	lab.Unit(t)
	before := &watch.Snapshot{Version: cgroupfs.V2}
	for i := range 1000 {
		before.Groups = append(before.Groups, &watch.Group{Path: fmt.Sprintf("/%04d", i), Target: "x"})
	}
	now := &watch.Snapshot{Version: cgroupfs.V2, Groups: slices.Clone(before.Groups[1:])}
	now.Groups[4] = &watch.Group{Path: "/0005", Target: "y"}
	now.Groups = slices.Insert(now.Groups, 0, &watch.Group{Path: "/0000a", Target: "new"})
	others := map[string]bool{"/0900": true}
	f := TopFrame{Snapshot: now, Same: func(path string) bool { return !others[path] }}
	knows := map[string]string{}
	take := func(before *watch.Snapshot) (events, groups int, last TopEvent) {
		f.Events(before, func(text []byte) bool {
			var e TopEvent
			if err := json.Unmarshal(text, &e); err != nil || e.Schema.Schema != "weir.top.event/1" {
				t.Fatalf("%v in %s", err, text)
			}
			if e.Whole {
				clear(knows)
			}
			for _, path := range e.Gone {
				delete(knows, path)
			}
			for _, g := range e.Groups {
				knows[g.Cgroup] = g.Target
			}
			events, groups, last = events+1, groups+len(e.Groups), e
			return true
		})
		return events, groups, last
	}
	if events, groups, last := take(nil); events != 5 || groups != 1000 || last.More || last.Whole || len(knows) != 1000 {
		t.Errorf("whole: %d events of %d groups, %+v", events, groups, last.Top)
	}
	clear(knows)
	for _, g := range before.Groups {
		knows[g.Path] = g.Target
	}
	if events, groups, last := take(before); events != 1 || groups != 3 || !slices.Equal(last.Gone, []string{"/0000"}) || last.Whole {
		t.Errorf("changes: %d events of %d groups, %+v", events, groups, last)
	}
	if len(knows) != 1000 || knows["/0005"] != "y" || knows["/0000a"] != "new" {
		t.Errorf("%v", knows)
	}
	if events, groups, last := take(now); events != 1 || groups != 1 || last.Groups[0].Cgroup != "/0900" {
		t.Errorf("of a plan: %d events, %d groups", events, groups)
	}
	others = nil
	if events, groups, last := take(now); events != 1 || groups != 0 || last.Gone == nil || last.Groups == nil {
		t.Errorf("nothing: %d events, %d groups, %+v", events, groups, last)
	}
	if f.Events(nil, func([]byte) bool { return false }) {
		t.Error("it goes on for who has gone")
	}
}

// A limit of nothing, of which each rate is an endless share, is none that can be read.
func TestNoLimitOfNothing(t *testing.T) {
	lab.Unit(t)
	var d TopDevice
	if err := json.Unmarshal([]byte(`{"limit":{"wbps":0}}`), &d); err == nil && d.Limit.Bounds() {
		t.Errorf("%+v", d.Limit)
	}
}
