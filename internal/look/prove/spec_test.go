package prove

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
)

func TestBlockForGivesASliceTenRequests(t *testing.T) {
	for rate, want := range map[uint64]int{1_000: 512, 30_000: page, 1_000_000: 8 << 10, 10_000_000: 64 << 10, 100_000_000: 256 << 10, 1 << 40: 256 << 10} {
		if got := blockFor(rate, 512); got != want {
			t.Errorf("blockFor(%d) = %d, want %d", rate, got, want)
		}
	}
	if got := blockFor(1_000, 4096); got != 4096 {
		t.Errorf("below a logical block: %d", got)
	}
}

func options(l limit.Limit) Options {
	return Options{Limit: l, Paths: []load.Path{load.Direct, load.Sync, load.Buffered, load.Mapped}, For: 3 * time.Second, Logical: 512, Room: 1 << 30}
}

// Where direct writes go through the page cache, their writeback is asked for, and their
// operations are not counted.
func TestPlanThroughTheCache(t *testing.T) {
	o := options(limit.None.With(limit.WBPS, limit.PerSecond(10e6)).With(limit.RBPS, limit.PerSecond(10e6)).With(limit.WIOPS, limit.PerSecond(1e4)))
	o.Cached, o.Paths = true, []load.Path{load.Direct, load.Async}
	tests, notes := Plan(o)
	if got := names(tests); got != "direct write, async write ×32, direct read, async read ×32" || len(notes) != 2 {
		t.Errorf("%q, notes %q", got, notes)
	}
	for _, test := range tests {
		if test.Delayed() == test.Key.IsRead() || test.Delayed() && test.Warm != warmDelayed {
			t.Errorf("%s: %+v", test, test)
		}
	}
}

func names(tests []Test) string {
	var all []string
	for _, t := range tests {
		all = append(all, t.String())
	}
	return strings.Join(all, ", ")
}

func TestPlan(t *testing.T) {
	write := limit.None.With(limit.WBPS, limit.PerSecond(10_000_000))
	for _, c := range []struct {
		o     Options
		want  string
		notes int
	}{
		{options(limit.None), "", 0},
		{options(write), "direct write, synchronous write, buffered write, mapped write", 0},
		{options(limit.None.With(limit.RBPS, limit.PerSecond(1e6))), "direct read, buffered read, mapped read", 0},
		{options(limit.None.With(limit.WIOPS, limit.PerSecond(100))), "random direct write", 0},
		// 5000 blocks of 512 bytes are fewer bytes than the other limit; 50,000 are not.
		{options(write.With(limit.WIOPS, limit.PerSecond(5_000))), "direct write, synchronous write, buffered write, mapped write, random direct write", 0},
		{options(write.With(limit.WIOPS, limit.PerSecond(50_000))), "direct write, synchronous write, buffered write, mapped write", 1},
		// Ten megabytes in two operations a second: no block is that large.
		{options(write.With(limit.WIOPS, limit.PerSecond(2))), "random direct write", 4},
	} {
		tests, notes := Plan(c.o)
		if got := names(tests); got != c.want || len(notes) != c.notes {
			t.Errorf("%s: %q, notes %q; want %q and %d notes", c.o.Limit, got, notes, c.want, c.notes)
		}
		for _, test := range tests {
			if test.Size < int64(test.Block) || test.Size > c.o.Room || test.Size%int64(test.Block) != 0 {
				t.Errorf("%s: size %d of blocks of %d", test, test.Size, test.Block)
			}
		}
	}
	o := options(write)
	o.Drains = true
	for _, test := range first(Plan(o)) {
		if test.Delayed() && test.Size > 2*10_000_000 {
			t.Errorf("%s: %d bytes can be left dirty under a limit that stays", test, test.Size)
		}
	}
}

// Each limit has a row, or an omission that says how it can be tried.
func TestPlanNamesWhatItCannotTry(t *testing.T) {
	all := limit.None
	for _, k := range limit.Keys {
		all = all.With(k, limit.PerSecond(2_000_000))
	}
	for _, c := range []struct {
		limit limit.Limit
		paths []load.Path
		key   limit.Key
		do    fault.Do
	}{
		{limit.None.With(limit.RBPS, limit.PerSecond(1e6)), []load.Path{load.Sync}, limit.RBPS, fault.AddDirect},
		{limit.None.With(limit.WIOPS, limit.PerSecond(100)), []load.Path{load.Buffered, load.Mapped}, limit.WIOPS, fault.AddDirect},
		{limit.None.With(limit.RIOPS, limit.PerSecond(100)), []load.Path{load.Buffered}, limit.RIOPS, fault.AddDirect},
		{limit.None.With(limit.WBPS, limit.PerSecond(1e7)).With(limit.WIOPS, limit.PerSecond(50_000)), Paths, limit.WIOPS, fault.ProveAlone},
		{limit.None.With(limit.WBPS, limit.PerSecond(1e7)).With(limit.WIOPS, limit.PerSecond(2)), Paths, limit.WBPS, fault.ProveAlone},
	} {
		o := options(c.limit)
		o.Paths = c.paths
		tests, omitted := Plan(o)
		if slices.Contains(keysOf(tests), c.key) || len(omitted) == 0 || omitted[0].Key != c.key || omitted[0].Do != c.do || omitted[0].Why == "" {
			t.Errorf("%s by %v: %s; %+v", c.limit, c.paths, names(tests), omitted)
		}
	}
	for n := range 1 << len(Paths) { // whatever is to be tried
		o := options(all)
		o.Paths = nil
		for i, p := range Paths {
			if n>>i&1 == 1 {
				o.Paths = append(o.Paths, p)
			}
		}
		tests, omitted := Plan(o)
		for _, k := range limit.Keys {
			if !slices.Contains(keysOf(tests), k) && !slices.ContainsFunc(omitted, func(o Omission) bool { return o.Key == k }) {
				t.Errorf("%v: nothing is said of %s", o.Paths, k)
			}
		}
	}
}

// On btrfs a buffered writer is not to come to its second round, and is still to try for
// more than the limit; where there is no room for both it goes round as elsewhere.
func TestPlanOneRound(t *testing.T) {
	for _, c := range []struct {
		rate   uint64
		drains bool
		room   int64
		paced  bool
	}{
		{4e6, false, 1 << 30, true},
		{4e6, true, 1 << 30, true},
		{50e6, false, 1 << 30, true},
		{50e6, false, 100 << 20, false},
		{200e6, false, 1 << 30, false},
	} {
		o := options(limit.None.With(limit.WBPS, limit.PerSecond(c.rate)))
		o.Entangled, o.Drains, o.Room = true, c.drains, c.room
		for _, test := range first(Plan(o)) {
			row := (test.Warm + test.For).Seconds()
			switch paced := test.Pace > 0; {
			case paced != (c.paced && test.Delayed()):
				t.Errorf("%+v, %s: pace %d", c, test, test.Pace)
			case !paced:
			case float64(test.Pace)*row >= float64(test.Size) || float64(test.Pace) < 1.3*float64(c.rate) || test.Size > c.room:
				t.Errorf("%+v, %s: pace %d for %.1f s of a file of %d", c, test, test.Pace, row, test.Size)
			case c.drains && float64(test.Pace-int64(c.rate))*row > float64(c.rate)*row/2:
				t.Errorf("%+v, %s: pace %d leaves much to drain", c, test, test.Pace)
			}
		}
	}
}

func first(tests []Test, _ []Omission) []Test { return tests }

func TestShorten(t *testing.T) {
	all := limit.None
	for _, k := range limit.Keys {
		all = all.With(k, limit.PerSecond(2_000_000))
	}
	tests := first(Plan(options(all.With(limit.WIOPS, limit.PerSecond(400)).With(limit.RIOPS, limit.PerSecond(400)))))
	if len(tests) != 9 {
		t.Fatalf("%s: want nine rows", names(tests))
	}
	if d := Duration(Shorten(tests, 28*time.Second)); d > 28*time.Second {
		t.Errorf("nine rows take %s", d)
	}
	if d := Shorten(tests, time.Second)[0].For; d != 2*time.Second {
		t.Errorf("a row was cut to %s", d)
	}
}
