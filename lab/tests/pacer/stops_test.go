package pacer_test

import (
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
}

func (b blow) String() string {
	name := func(s unix.Signal) string { return strings.TrimPrefix(unix.SignalName(s), "SIG") }
	said := "to the pacer " + name(b.pacer)
	for _, s := range b.guards {
		said += ", to a guard " + name(s)
	}
	return said
}

// blows are all that leave one of the three. The first ones are those of a short run.
func blows() []blow {
	const stop, kill = unix.SIGSTOP, unix.SIGKILL
	all := []blow{{stop, nil}, {kill, []unix.Signal{stop}}, {kill, []unix.Signal{kill}}}
	for _, p := range []unix.Signal{stop, kill} {
		for _, g := range [][]unix.Signal{nil, {stop}, {kill}} {
			all = append(all, blow{p, g})
		}
	}
	for _, g := range [][]unix.Signal{{stop}, {kill}, {stop, stop}, {stop, kill}, {kill, kill}} {
		all = append(all, blow{0, g})
	}
	return all
}

// If the pacer or its guards are stopped or killed, no process stays paused. (The kernel's
// OOM killer spares them; otherwise that would be a SIGKILL.)
func TestStopsOfThePacer(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Newest, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	o := newOwned(t, e, disk.Dir, "lab-stops")
	rate := lab.Scaled(e, 40<<20)
	weir(t, "set", o.target, "--write", fmt.Sprint(rate), "--on", disk.Dir, "--hold", "pacer")
	ready := func() bool { return len(running(t, "__pacer")) == 1 && len(running(t, "__guard")) == guards }
	var worst time.Duration
	all := blows()
	for i := range lab.Times(t, "WEIR_STOPS", 3) {
		lab.Await(t, 20*time.Second, "the pacer and its guards", ready)
		pacer, others := running(t, "__pacer"), running(t, "__guard")
		spared(t, append(slices.Clone(pacer), others...))
		b := all[i%len(all)]
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
		if b.pacer != 0 {
			lab.Await(t, 20*time.Second, "another pacer", func() bool { return ready() && !slices.Equal(running(t, "__pacer"), pacer) })
		}
	}
	t.Logf("nothing was written for %s at most", worst)
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
