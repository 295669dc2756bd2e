package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

const (
	// birthsEachSec is how many containers start in a second.
	birthsEachSec = 20
	// lateMost is how many of a hundred programs may write before their rule. On an idle machine none does.
	lateMost = 20
	// witnessEach is after how many containers there is one more whose birth witnesses see.
	witnessEach = 5
	// birthRounds is how often a machine may try that was too busy.
	birthRounds = 3
	// birthMost is how long weird may need from a birth to its rule: half of the time, and 99 times of a hundred where a
	// thousand are measured. To that comes what the machine needs: birthBare of the times after which a bare program knows.
	birthMost, birthBare = time.Millisecond, 2
	// birthMany are enough for a 99th percentile.
	birthMany = 1000
)

// From the birth of a container's group, and from the start of its program, which writes at once, to
// its rule: how long that takes, and how many programs wrote before it. weird knows the container
// since it was made. Nobody holds a program back until its rule is there, so a busy machine may let
// some be faster.
func TestAgentBirths(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Once)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	runInMemory(t)
	w.start()
	n := lab.Times(t, "WEIR_BIRTHS", 50)
	late := g.births(t, disk, n, 1)
	for round := 2; late != "" && round <= birthRounds; round++ {
		lab.AwaitQuiet(t)
		late = g.births(t, disk, n, round)
	}
	if late != "" {
		lab.Measures(t)
		t.Errorf("%s, %d times", late, birthRounds)
	}
	if c := w.status().Counts; c.Failures != 0 || c.Drifts != 0 {
		t.Errorf("%+v\n%s", c, w.lately())
	}
}

// births starts n containers, and logs how long each took to have its rule, and how many programs wrote before it. late says
// what took too long; empty: nothing. Some more start with witnesses beside, which take weird's time and do not count.
func (g *engine) births(t *testing.T, disk *lab.TestDisk, n, round int) (late string) {
	t.Helper()
	create := func(i int) *container {
		return g.create(fmt.Sprintf("web-%d-%d", round, i), nil, "writer", disk.Node)
	}
	var all, seen []stamps
	var beside []*witness
	var running []*container
	made := create(0)
	for i := range n + n/witnessEach {
		if i == n {
			beside = []*witness{g.witness(t, "told", "real-time"), g.witness(t, "told", "usual"), g.witness(t, "polls", "usual")}
		}
		next := time.Now().Add(time.Second / birthsEachSec)
		c := made
		lab.Await(t, patience, "weird to ask about the container", func() bool { return g.isLearnt(c) })
		made = create(i + 1) // weird has the answer by then: docker run takes longer from the one to the other
		if one := g.birth(t, c, disk); i < n {
			all = append(all, one)
		} else {
			seen = append(seen, one)
		}
		running = append(running, c) // it goes on for a second: weird's pacer comes after the rule
		if len(running) > birthsEachSec {
			g.end(running[0])
			running = running[1:]
		}
		time.Sleep(time.Until(next))
	}
	late = judge(t, all, beside[0].log(t, seen))
	for _, one := range beside[1:] {
		one.log(t, seen)
	}
	for _, c := range running {
		g.end(c)
	}
	g.remove(made)
	return late
}

// birth starts a container that weird knows.
func (g *engine) birth(t *testing.T, c *container, disk *lab.TestDisk) stamps {
	t.Helper()
	born, ruled := g.bearTimed(c, disk, smallRate)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.join(c)
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	g.list(c)
	if _, err := io.WriteString(c.in.(io.Writer), "\n"); err != nil {
		t.Fatal(err)
	}
	at := <-ruled
	if at == 0 {
		t.Fatalf("%s has no rule after %v", c.name, patience)
	}
	line, err := said.ReadString('\n')
	wrote, bad := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil || bad != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return stamps{c.id, born, at, wrote}
}

// judge logs how long births took to their rules, and returns what was too long; empty: nothing. bare is after how long a
// program that does nothing else knows of 99 births of a hundred.
func judge(t *testing.T, all []stamps, bare time.Duration) (late string) {
	t.Helper()
	var fromGroup, before []time.Duration
	for _, one := range all {
		fromGroup = append(fromGroup, time.Duration(one.ruled-one.born))
		if one.wrote < one.ruled {
			before = append(before, time.Duration(one.ruled-one.wrote))
		}
	}
	p50, p99 := logTimes(t, "from the group's birth to its rule", fromGroup)
	t.Logf("%d of %d programs wrote before their rule", len(before), len(all))
	if len(before) > 0 {
		logTimes(t, "so long before", before)
	}
	switch most := birthMost + birthBare*bare; {
	case 100*len(before) > lateMost*len(all):
		return fmt.Sprintf("more than %d %% of the programs wrote before their rule", lateMost)
	case p50 > most:
		return fmt.Sprintf("half of the rules took longer than %v", most)
	case len(all) >= birthMany && p99 > most:
		return fmt.Sprintf("more than a hundredth of the rules took longer than %v", most)
	}
	return ""
}

// firstRule waits until a container has a rule, and returns when that was, by the clock of now; 0: it
// has none for too long. The calling thread looks each lookEach, whatever else the machine does.
func (g *engine) firstRule(c *container, disk *lab.TestDisk, wbps uint64) int64 {
	pause := unix.NsecToTimespec(int64(lookEach))
	for began := time.Now(); time.Since(began) < patience; {
		if got, err := g.rule(c, disk); err == nil && got == wbps {
			return now()
		}
		_ = unix.Nanosleep(&pause, nil) // of this thread: Go's timers wake another one first
	}
	return 0
}

// lookEach is how exactly the time of a rule is measured.
const lookEach = 50 * time.Microsecond

// bearTimed makes a container's group, and returns when it began to, and, later, when the group had its rule; 0: it has none
// for too long.
func (g *engine) bearTimed(c *container, disk *lab.TestDisk, wbps uint64) (born int64, ruled <-chan int64) {
	g.t.Helper()
	began, has := make(chan int64, 1), make(chan int64, 1)
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine
		_ = inRealTime()       // else it measures too much
		at := now()
		err := os.Mkdir(c.dir, 0o755)
		failed <- err
		began <- at
		if err == nil {
			has <- g.firstRule(c, disk, wbps)
		}
	}()
	if err := <-failed; err != nil {
		g.t.Fatal(err)
	}
	return <-began, has
}

// inRealTime has the calling thread run in real time, and wake when it asked to.
func inRealTime() error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	return errors.Join(unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0), unix.SchedSetAttr(0, &attr, 0))
}

// runInMemory has weir's records of this boot in memory, as on every host whose /run is a tmpfs.
func runInMemory(t *testing.T) {
	t.Helper()
	const dir = "/run/weir"
	var st unix.Statfs_t
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Statfs(dir, &st); err != nil || st.Type == unix.TMPFS_MAGIC {
		return
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700"); err != nil { // in the lab's own namespace
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil { // the pacer may be there
			t.Error(err)
		}
	})
}
