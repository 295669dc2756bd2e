package pacer_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// A blow is what is done to the pacer and to its guards, at once.
type blow struct {
	pacer  unix.Signal // 0: nothing
	guards []unix.Signal
	full   bool // no byte can be written to /run/weir meanwhile
}

func (b blow) String() string {
	name := func(s unix.Signal) string { return strings.TrimPrefix(unix.SignalName(s), "SIG") }
	said := "to the pacer " + name(b.pacer)
	for _, s := range b.guards {
		said += ", to a guard " + name(s)
	}
	if b.full {
		said += ", with a full /run"
	}
	return said
}

// blows are all that leave one of the three, and with full each of them again with a full /run. The
// first ones are those of a short run.
func blows(full bool) []blow {
	const stop, kill = unix.SIGSTOP, unix.SIGKILL
	all := []blow{{pacer: stop}, {pacer: kill, guards: []unix.Signal{stop}}, {pacer: kill, guards: []unix.Signal{kill}}}
	for _, p := range []unix.Signal{stop, kill} {
		for _, g := range [][]unix.Signal{nil, {stop}, {kill}} {
			all = append(all, blow{pacer: p, guards: g})
		}
	}
	for _, g := range [][]unix.Signal{{stop}, {kill}, {stop, stop}, {stop, kill}, {kill, kill}} {
		all = append(all, blow{guards: g})
	}
	if full {
		for _, b := range slices.Clone(all) {
			b.full = true
			all = append(all, b)
		}
	}
	return all
}

// If the pacer or its guards are stopped or killed, no process stays paused. (The kernel's
// OOM killer spares them; otherwise that would be a SIGKILL.)
func TestStopsOfThePacer(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Newest, lab.NoSystemd, lab.FS("ext4"))
	if e.Cgroups.IOInV2 {
		lab.Need(t, lab.Whole)
	}
	disk := lab.Disk(t, lab.FS("ext4"))
	rounds := lab.Times(t, "WEIR_STOPS", 3)
	fills := e.Lane != "native" && rounds > 3 // a full /run would harm what else runs on this host
	if fills {
		smallRun(t)
	}
	o := newOwned(t, e, disk.Dir, "lab-stops")
	rate := lab.Scaled(e, 40<<20)
	weir(t, "set", o.target, "--write", fmt.Sprint(rate), "--on", disk.Dir, "--hold", "pacer")
	ready := func() bool { return len(lab.Called(t, "__pacer")) == 1 && len(lab.Called(t, "__guard")) == guards }
	var worst time.Duration
	all := blows(fills)
	for i := range rounds {
		lab.Await(t, 20*time.Second, "the pacer and its guards", ready)
		pacer, others := lab.Called(t, "__pacer"), lab.Called(t, "__guard")
		spared(t, append(slices.Clone(pacer), others...))
		b := all[i%len(all)]
		empty := func() {}
		if b.full {
			empty = fillRun(t)
		}
		if b.pacer != 0 {
			send(t, b.pacer, pacer...)
		}
		for at, s := range b.guards {
			send(t, s, others[at])
		}
		before, began := size(o.file), time.Now()
		for size(o.file) == before {
			if time.Since(began) > stoppedMax(e) {
				t.Fatalf("%s: nothing was written for %s", b, time.Since(began))
			}
			time.Sleep(time.Millisecond)
		}
		worst = max(worst, time.Since(began))
		send(t, unix.SIGCONT, others...)
		if empty(); b.full { // a pacer that could not start has left that to the next weir
			weir(t, "show", "--for", "0")
		}
		if b.pacer != 0 {
			lab.Await(t, 20*time.Second, "another pacer", func() bool { return ready() && !slices.Equal(lab.Called(t, "__pacer"), pacer) })
		}
	}
	t.Logf("%d of %d kinds of blows: nothing was written for %s at most", min(rounds, len(all)), len(all), worst)
	lab.Await(t, 20*time.Second, "the pacer and its guards", ready)
	weir(t, "clear", o.target)
}

// spared checks that the kernel does not choose processes to end for want of memory, where
// weir may tell it so (CAP_SYS_RESOURCE).
func spared(t *testing.T, pids []int) {
	t.Helper()
	const file, least = "/proc/%v/oom_score_adj", "-1000"
	own := fmt.Sprintf(file, "self")
	before, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if os.WriteFile(own, []byte(least), 0) != nil {
		return
	}
	if err := os.WriteFile(own, before, 0); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if text, err := os.ReadFile(fmt.Sprintf(file, pid)); err == nil && strings.TrimSpace(string(text)) != least {
			t.Errorf("process %d may be chosen for want of memory: %s", pid, text)
		}
	}
}

const runDir = "/run/weir"

// smallRun gives weir a small file system for its records, until the end of the test.
func smallRun(t *testing.T) {
	t.Helper()
	lab.Await(t, 20*time.Second, "the end of another pacer", func() bool { return len(lab.Called(t, "__pacer")) == 0 })
	err := os.MkdirAll(runDir, 0o755)
	if err == nil {
		err = unix.Mount("tmpfs", runDir, "tmpfs", 0, "size=256k,mode=755")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(runDir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fillRun fills it, until empty is called.
func fillRun(t *testing.T) (empty func()) {
	t.Helper()
	file := runDir + "/fill"
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}
