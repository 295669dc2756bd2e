package top

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

var update = flag.Bool("update", false, "write the expected screens anew")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

var kernel = place.By{Mechanism: place.Throttle}

// device is one with a limit, and what is expected to hold buffered writes.
func device(l limit.Limit, r watch.Rates, buffered place.By) watch.Device {
	d := watch.Device{Number: blkdev.Number{Major: 254, Minor: 16}, Node: "/dev/vdb", Counted: true, Rates: &r, Limit: l,
		Total: cgroupfs.Stat{ReadBytes: 12e9, WrittenBytes: 34e9, Reads: 1200, Writes: 3400}}
	if l.Bounds() {
		d.Expected = &place.Expected{Placed: place.Placed{Limit: l}, Expectation: place.Expectation{Direct: kernel, Sync: kernel, Mapped: kernel, Read: kernel, Buffered: buffered}}
	}
	return d
}

func pressure(some float64) *watch.Pressure {
	return &watch.Pressure{Some: some, Full: some / 2, Known: true}
}

// host is a host in the middle of its work.
func host() *watch.Snapshot {
	write := func(n uint64) limit.Limit { return limit.None.With(limit.WBPS, limit.PerSecond(n)) }
	s := &watch.Snapshot{At: time.Date(2026, 1, 2, 14, 3, 7, 0, time.Local), Window: time.Second, Version: cgroupfs.V2, Watched: 212, Pressure: pressure(12)}
	s.Disks = []watch.Disk{
		{Node: "/dev/vda", Rates: &watch.Rates{}},
		{Node: "/dev/vdb", Rates: &watch.Rates{RBPS: 31.2e6, WBPS: 48e6}, Use: 87.4, Queue: 4.25},
	}
	s.Groups = []*watch.Group{
		{Path: "/idle.slice", Target: "unit:idle.slice", Devices: []watch.Device{device(limit.Limit{}, watch.Rates{}, place.By{})}},
		{Path: "/kubepods.slice/pod1", Target: "pod:ci/build-7", Owner: targets.Owner{Kind: "kubernetes"}, Pressure: pressure(0.2), Memory: &watch.Memory{Dirty: 3e6},
			Devices: []watch.Device{device(write(10e6), watch.Rates{RBPS: 2.1e6, WBPS: 1e6, RIOPS: 40, WIOPS: 8}, place.By{Mechanism: place.Writeback})}},
		{Path: "/system.slice", Target: "unit:system.slice", Pressure: pressure(71),
			Devices: []watch.Device{device(limit.Limit{}, watch.Rates{RBPS: 28.9e6, WBPS: 95e6, RIOPS: 900, WIOPS: 12345}, place.By{})}},
		{Path: "/system.slice/docker-web.scope", Target: "docker:web", Owner: targets.Owner{Kind: "docker", Name: "0123456789ab"}, Pressure: pressure(71), Memory: &watch.Memory{Dirty: 12e6, Writeback: 2e6},
			Devices: []watch.Device{device(write(10e6).With(limit.WIOPS, limit.PerSecond(500)), watch.Rates{WBPS: 9.98e6, WIOPS: 78}, place.By{Mechanism: place.Writeback})}},
		{Path: "/system.slice/docker-old.scope", Target: "docker:legacy-with-a-long-name-that-somebody-chose", Pressure: pressure(0), Memory: &watch.Memory{Dirty: 1.2e9},
			Devices: []watch.Device{device(write(10e6), watch.Rates{WBPS: 48.1e6, WIOPS: 400}, place.By{Why: "ext4 with data=journal"})}},
		{Path: "/system.slice/new.service", Target: "unit:new\x1b[2J.service",
			Devices: []watch.Device{{Number: blkdev.Number{Major: 254}, Node: "/dev/vda", Limit: limit.None.With(limit.RIOPS, limit.PerSecond(5))}}},
	}
	return s
}

// What is shown at each width, to be looked at.
func TestTable(t *testing.T) {
	for _, width := range []int{60, 80, 120, 200, 0} {
		golden(t, fmt.Sprintf("table-%d.txt", width), Table(View{Snapshot: host()}, Options{}, width))
	}
	plans := map[string]string{"/system.slice/docker-web.scope": "small", "/kubepods.slice/pod1": "c\x1bi"}
	for _, width := range []int{100, 140, 0} {
		golden(t, fmt.Sprintf("plans-%d.txt", width), Table(View{Snapshot: host(), Plans: plans}, Options{}, width))
	}
	golden(t, "tree-100.txt", Table(View{Snapshot: host()}, Options{Tree: true, All: true}, 100))
}

// No line is longer than the terminal, at any width, and each has the figures of its group.
func TestEachWidth(t *testing.T) {
	for width := 20; width <= 250; width++ {
		text := Table(View{Snapshot: host(), Plans: map[string]string{"/system.slice/docker-web.scope": strings.Repeat("long", width/20)}}, Options{}, width)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
		if width >= 60 && (!strings.Contains(text, "9.98 MB") || !strings.Contains(text, "48.1 MB") || !strings.Contains(text, "481 %") || !strings.Contains(text, "docker:web")) {
			t.Errorf("%d columns lack figures:\n%s", width, text)
		}
		if strings.Contains(text, "\x1b") {
			t.Errorf("a name reaches the terminal as it is: %q", text)
		}
	}
}

// A disk's rates are whole at each width from 60 on: its queue gives them room.
func TestDiskLine(t *testing.T) {
	d := watch.Disk{Node: "/dev/nvme10n1", Rates: &watch.Rates{RBPS: 131e6, WBPS: 480e6}, Use: 100, Queue: 112.4}
	for width, want := range map[int]string{0: "nvme10n1  100 % busy  queue 112.4  read 131 MB/s  write 480 MB/s", 64: "nvme10n1  100 % busy  queue 112.4  read 131 MB/s  write 480 MB/s",
		63: "nvme10n1  100 % busy  read 131 MB/s  write 480 MB/s", 60: "nvme10n1  100 % busy  read 131 MB/s  write 480 MB/s"} {
		if got := diskLine(d, width); got != want {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

// order is the targets in their order, shortened.
func order(o Options) string {
	var names []string
	for _, r := range rowsOf(host(), nil, o, nil, 0) {
		name := r.Target[strings.IndexByte(r.Target, ':')+1:]
		names = append(names, name[:3])
	}
	return strings.Join(names, " ")
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "leg web ci/ new sys"},
		{Options{Reverse: true}, "sys new ci/ web leg"},
		{Options{Sort: Read}, "sys ci/ leg web new"},
		{Options{Sort: Write}, "sys leg web ci/ new"},
		{Options{Sort: Wait}, "sys web ci/ leg new"},
		{Options{Sort: Dirty}, "leg web ci/ sys new"},
		{Options{Sort: Target}, "leg web ci/ new sys"},
		{Options{Active: true}, "leg web ci/ sys"},
		{Options{All: true}, "leg web ci/ new sys idl"},
		{Options{Filter: "DOCKER"}, "leg web"},
		{Options{Filter: "kubepods"}, "ci/"},
		{Options{Tree: true, All: true}, "idl ci/ sys leg web new"},
	} {
		if got := order(c.o); got != c.want {
			t.Errorf("%+v: %s, want %s", c.o, got, c.want)
		}
	}
	if _, err := ParseColumn("wirte"); err == nil || !strings.Contains(err.Error(), "did you mean write?") {
		t.Errorf("ParseColumn = %v", err)
	}
	if c, err := ParseColumn("dirty"); err != nil || c != Dirty {
		t.Errorf("ParseColumn = %v, %v", c, err)
	}
}

func TestNothingToShow(t *testing.T) {
	s := &watch.Snapshot{At: host().At, Version: cgroupfs.V1, Unread: 2, Unreadable: errors.New("denied\x1b")}
	for _, c := range []struct {
		o    Options
		says string
	}{{Options{}, "none has a limit"}, {Options{Active: true}, "none did any I/O\n"}, {Options{Filter: "x"}, `none has x in its name`}, {Options{All: true}, "since it was made"}} {
		text := Table(View{Snapshot: s}, c.o, 0)
		if !strings.Contains(text, c.says) || !strings.Contains(text, `2 not read: denied\x1b`) || strings.Contains(text, "\x1b") {
			t.Errorf("%+v: %s", c.o, text)
		}
	}
}

func TestDetail(t *testing.T) {
	s := host()
	golden(t, "detail.txt", strings.Join(Detail(s.Groups[3], "", held.Verdict{}), "\n")+"\n")
	if text := Detail(s.Groups[3], "sm\x1ball", held.Verdict{}); text[1] != `cgroup /system.slice/docker-web.scope, owner docker (0123456789ab), plan sm\x1ball` {
		t.Errorf("%q", text[1])
	}
	g := *s.Groups[4]
	g.Paced = &watch.Paced{WBPS: 10e6, Missed: "3 processes of /x"}
	if text := strings.Join(Detail(&g, "", held.Verdict{}), "\n"); !strings.Contains(text, "pacer holds writes at 10 MB/s, except for 3 processes of /x") || !strings.Contains(text, "481 % of 10 MB/s") {
		t.Error(text)
	}
	for want, paused := range map[string]*watch.Paused{
		"except for 3 processes of /x; it has paused the group for 12.3 s in all":           {Total: 12300 * time.Millisecond},
		"except for 3 processes of /x; it pauses the group 31 % of the time, 12.3 s in all": {Total: 12300 * time.Millisecond, Share: 31.4, Known: true},
	} {
		g.Paused = paused
		if text := strings.Join(Detail(&g, "", held.Verdict{}), "\n"); !strings.Contains(text, want) {
			t.Errorf("%s: not in\n%s", want, text)
		}
	}
	g.Paused = nil
	g.Paced = &watch.Paced{WBPS: 10e6, Lapsed: "it is gone"}
	if text := strings.Join(Detail(&g, "", held.Verdict{}), "\n"); !strings.Contains(text, "does not: it is gone") || heldText(&g) != "pacer lapsed" {
		t.Error(text)
	}
}

// A few rows that come first are those that a sort of all puts there.
func TestPutFirst(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + random.IntN(60)
		rows := make([]row, n)
		for i := range rows {
			rows[i] = row{Group: &watch.Group{Path: fmt.Sprint(i), Target: fmt.Sprint(random.IntN(20))}, figure: float64(random.IntN(5)), moves: float64(random.IntN(3))}
		}
		want := slices.Clone(rows)
		slices.SortFunc(want, func(a, b row) int { return Options{}.compare(&a, &b) })
		most := 1 + random.IntN(n)
		putFirst(rows, most, Options{}.compare)
		if !slices.Equal(rows[:most], want[:most]) {
			t.Fatalf("%v, want %v", rows[:most], want[:most])
		}
		slices.SortFunc(rows, func(a, b row) int { return Options{}.compare(&a, &b) })
		if !slices.Equal(rows, want) {
			t.Fatal("rows were lost")
		}
	}
}
