package tally

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// What a command wrote after the last look that found it took no longer than since then, and not
// less: a look that comes after its end, and before it is known, has nothing to do with that.
func TestWhatAnEndedCommandWroteTookItsTime(t *testing.T) {
	const dir = cgrouptest.V2Dir + "/g/"
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{
		dir + "cgroup.procs": fmt.Sprintln(os.Getpid()), dir + "io.stat": "", dir + "cgroup.type": "domain\n",
	})
	tally, err := Start(h.Group("/g"), []Rule{{Device: disk, Limit: limit.Limit{WBPS: limit.PerSecond(10 * megabyte)}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond)
	h.Write(dir+"cgroup.procs", "") // it has ended
	gone := time.Now()
	time.Sleep(150 * time.Millisecond)
	sum := tally.End(t.Context(), 42*megabyte)
	if took := sum.Writing.Duration(); took < time.Since(gone) || took > time.Since(gone)+100*time.Millisecond || sum.Written < 42*megabyte {
		t.Errorf("%d bytes in %s; it ended %s ago", sum.Written, took, time.Since(gone))
	}
}

// What a look finds was done until it was read, however long that took, and since the last look began to read:
// a busy machine makes no burst of it.
func TestALookThatTakesLong(t *testing.T) {
	const slow = 60 * time.Millisecond
	_, tally := still(t)
	var seen escape.Reading
	tally.read = func(uint64) (escape.Reading, error) {
		time.Sleep(slow)
		seen.Written += megabyte
		seen.Stats = []cgroupfs.Stat{{Device: disk, WrittenBytes: seen.Written, Writes: seen.Written / 4096}}
		return seen, nil
	}
	began := time.Now()
	for i := range 3 {
		if tally.look(0); tally.sum.Ended.Before(began.Add(time.Duration(i+1) * slow)) {
			t.Errorf("look %d was over %s after the first began", i, tally.sum.Ended.Sub(began))
		}
		if got := tally.at; got.After(tally.sum.Ended.Add(-slow)) || got.Before(began) {
			t.Errorf("look %d began to read %s before its end", i, tally.sum.Ended.Sub(got))
		}
	}
	if got := tally.sum.Devices[0].Writing.Duration(); got < 3*slow {
		t.Errorf("3 MB took %s", got)
	}
}

// still is a tally of group /g, which looks when the test does.
func still(t *testing.T) (cgrouptest.Host, *Tally) {
	t.Helper()
	const dir = cgrouptest.V2Dir + "/g/"
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{dir + "cgroup.procs": "", dir + "io.stat": "", dir + "cgroup.type": "domain\n"})
	tally, err := Start(h.Group("/g"), []Rule{{Device: disk, Limit: limit.Limit{WBPS: limit.PerSecond(10 * megabyte)}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	close(tally.quit) // the test looks
	<-tally.done
	tally.quit = make(chan struct{})
	return h, tally
}

// The time for which weir's pacer has the group paused is counted once, however long each look takes.
func TestAPauseIsCountedOnce(t *testing.T) {
	const dir, slow = cgrouptest.V2Dir + "/g/", 60 * time.Millisecond
	h, tally := still(t)
	cell, err := h.Group("/g").Child(cgroupfs.CellName(h.Group("/g")))
	if err != nil {
		t.Fatal(err)
	}
	h.Write(dir+"cgroup.events", "frozen 0\n")
	h.Write(dir+filepath.Base(cell.Path())+"/cgroup.freeze", "1\n")
	tally.cell = &cell
	tally.read = func(uint64) (escape.Reading, error) { time.Sleep(slow); return escape.Reading{}, nil }
	began := time.Now()
	for range 4 {
		tally.look(0)
	}
	if got, all := tally.sum.Paused, time.Since(began); got < 3*slow || got > all {
		t.Errorf("paused for %s of %s", got, all)
	}
}

// While the owner of a command's group has it paused, a pause by weir's pacer is no time in which the
// command would have written.
func TestAnOwnersPauseIsNotWeirs(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{cgrouptest.V2Dir + "/a/x": ""})
	cell, err := h.Group("/a").Child(cgroupfs.CellName(h.Group("/a")))
	if err != nil {
		t.Fatal(err)
	}
	dir := cgrouptest.V2Dir + "/a/"
	for _, c := range []struct{ weirs, owners, paused bool }{
		{weirs: true, paused: true},
		{weirs: true, owners: true},
		{owners: true},
		{},
	} {
		flag := map[bool]string{false: "0\n", true: "1\n"}
		h.Write(dir+"cgroup.events", "frozen "+flag[c.owners])
		h.Write(dir+filepath.Base(cell.Path())+"/cgroup.freeze", flag[c.weirs])
		weirs, owners := (&Tally{cell: &cell}).pauses()
		if got := weirs && !owners; got != c.paused || owners != c.owners {
			t.Errorf("%+v: paused by weir: %t, by its owner: %t", c, weirs, owners)
		}
	}
}

// lostWatcher has lost what it has seen.
type lostWatcher struct{ played }

func (lostWatcher) Escaped(uint64) (map[blkdev.Number]uint64, error) {
	return nil, errors.New("it was killed")
}

// If what a watcher saw is lost, the estimate counts, with what is known of open files.
func TestAWatcherIsLost(t *testing.T) {
	const dir = cgrouptest.V2Dir + "/g/"
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{dir + "cgroup.procs": fmt.Sprintln(os.Getpid()), dir + "io.stat": "", dir + "cgroup.type": "domain\n"})
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lost, w := range map[bool]Watcher{true: &lostWatcher{}, false: &played{}} {
		tally, err := Start(h.Group("/g"), []Rule{{Device: disk, Limit: limit.Limit{WBPS: limit.PerSecond(10 * megabyte)}}}, w, nil)
		if err != nil || !tally.sum.Told {
			t.Fatalf("%v, told: %t", err, err == nil && tally.sum.Told)
		}
		close(tally.quit) // the test looks
		<-tally.done
		tally.quit = make(chan struct{})
		tally.list(escape.Reading{Escaped: 42 << 20 * uint64(runtime.NumCPU())})
		sum := tally.End(t.Context(), 42*megabyte)
		if named := slices.ContainsFunc(sum.Open, func(o Opened) bool { return o.Path == file.Name() }); sum.Told == lost || named != lost || (sum.Escaped >= 42*megabyte) != lost {
			t.Errorf("lost: %t; told: %t, open %v, escaped %d", lost, sum.Told, sum.Open, sum.Escaped)
		}
	}
}

// What was written under two limits is judged by neither. A limit on reads says nothing of writes.
func TestALimitIsChanged(t *testing.T) {
	const dir = cgrouptest.V2Dir + "/g/"
	for name, c := range map[string]struct {
		before, meanwhile, after string
		reads, writes            State
	}{
		"the same":            {"8:0 wbps=10000000\n", "8:0 rbps=max wbps=10000000 riops=max wiops=max\n", "8:0 wbps=10000000\n", Held, NotHeld},
		"raised":              {"8:0 wbps=10000000\n", "8:0 wbps=100000000\n", "8:0 wbps=100000000\n", Held, NotTold},
		"only for a while":    {"8:0 wbps=10000000\n", "", "8:0 wbps=10000000\n", Held, NotTold},
		"at last":             {"8:0 wbps=10000000\n", "8:0 wbps=10000000\n", "8:0 wbps=1000000\n", Held, NotTold},
		"that on reads":       {"8:0 wbps=10000000 riops=9\n", "8:0 wbps=10000000\n", "8:0 wbps=10000000 riops=9\n", NotTold, NotHeld},
		"that of other disks": {"8:0 wbps=10000000\n", "8:0 wbps=10000000\n9:0 wbps=5\n", "8:0 wbps=10000000\n9:0 wbps=5\n", Held, NotHeld},
		"of which none is":    {"", "", "", Held, NotHeld},
	} {
		h := cgrouptest.New(t, cgroupfs.V2, map[string]string{dir + "cgroup.procs": "", dir + "cgroup.type": "domain\n", dir + "io.stat": "", dir + "io.max": c.before})
		tally, err := Start(h.Group("/g"), []Rule{{Device: disk, Limit: limit.Limit{WBPS: limit.PerSecond(10 * megabyte)}}}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		close(tally.quit) // the test looks
		<-tally.done
		tally.quit = make(chan struct{})
		tally.ruled = tally.ruled.Add(-rulesLook)
		h.Write(dir+"io.max", c.meanwhile)
		tally.look(0)
		h.Write(dir+"io.max", c.after)
		h.Write(dir+"io.stat", "8:0 rbytes=4096 wbytes=500000000 rios=1 wios=500 dbytes=0 dios=0\n")
		sum := tally.End(t.Context(), 0)
		if r, w := sum.Reads(sum.Devices[0]), sum.Writes(sum.Devices[0]); r.State != c.reads || w.State != c.writes {
			t.Errorf("%s: reads %+v, want %s; writes %+v, want %s", name, r, c.reads, w, c.writes)
		}
	}
}
