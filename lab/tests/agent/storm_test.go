package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

const (
	// stormKnown containers start at once, and stormOthers groups that only look like containers are made between.
	stormKnown, stormOthers = 2000, 8000
	// stormShare is how much of a processor weird may have in real time, over stormWindow and longer.
	stormShare, stormWindow = 0.2, 500 * time.Millisecond
	// stormSlack is for what is between two looks, at weird and by it.
	stormSlack = 60 * time.Millisecond
)

// 10,000 groups are made at once, of which 2,000 are of containers with a plan. weird's thread in real time leaves the
// processor to others for most of the time. All containers get their limits, and the next one as fast as before.
func TestAgentInAStorm(t *testing.T) {
	// User-mode Linux counts a thread's time in ticks of 10 ms, and charges it with what the host took.
	e := lab.Need(t, lab.Root, lab.Lane("native"), lab.V1)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	runInMemory(t)
	var known []*container
	for i := range stormKnown {
		known = append(known, g.create(fmt.Sprint("web-", i), nil))
	}
	w.start()
	first := 0
	lab.Await(t, patience, "weird to know the containers", func() bool {
		c := known[first]
		first++ // one that weird did not know gets nothing later: it does not run
		g.bear(c)
		time.Sleep(10 * time.Millisecond)
		return g.wbps(c, disk) == smallRate
	})
	defer g.calm(known)
	known = known[first:]
	threads := w.inRealTime()
	if len(threads) != 1 {
		t.Fatalf("%d threads of weird run in real time, want 1", len(threads))
	}
	made := make(chan error, 1)
	began := time.Now()
	go func() { made <- g.storm(known) }()
	spent, inRealTime := w.watchThread(threads[0], made)
	took := time.Since(began)
	share := time.Duration(stormShare * float64(took+stormWindow))
	t.Logf("%d groups in %v: the thread took %v, %v of it in real time; it may take %v", stormKnown+stormOthers, took, spent, inRealTime, share)
	if inRealTime > share+stormSlack {
		t.Errorf("%v in real time", inRealTime)
	}
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, known...)
	lab.Await(t, patience, "the thread to run in real time again", func() bool { return len(w.inRealTime()) == 1 })
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, g.start("web-after", nil))
	if c := w.status().Counts; c.Missed != 0 {
		t.Errorf("%+v", c)
	}
}

// watchThread waits until groups are made and a thread of weird has nothing to do after that. It returns how long the thread
// ran, and how long of it in real time.
func (w *weird) watchThread(tid int, made <-chan error) (spent, inRealTime time.Duration) {
	w.t.Helper()
	before := w.spent(tid)
	for going, quiet := true, 0; going || quiet < 20; time.Sleep(5 * time.Millisecond) {
		is := len(w.inRealTime()) == 1
		now := w.spent(tid)
		if spent += now - before; is {
			inRealTime += now - before
		}
		if quiet++; now > before {
			quiet = 0
		}
		before = now
		select {
		case err := <-made:
			if going = false; err != nil {
				w.t.Fatal(err)
			}
		default:
		}
	}
	return spent, inRealTime
}

// storm makes the groups of containers, and others between that are called as containers nobody knows.
func (g *engine) storm(known []*container) error {
	for i := range stormOthers {
		if err := os.Mkdir(g.stormDir(i), 0o755); err != nil {
			return err
		}
		if at := i * len(known) / stormOthers; at != (i+1)*len(known)/stormOthers {
			if err := os.Mkdir(known[at].dir, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// calm removes them.
func (g *engine) calm(known []*container) {
	dirs := make([]string, 0, stormKnown+stormOthers)
	for i := range stormOthers {
		dirs = append(dirs, g.stormDir(i))
	}
	for _, c := range known {
		dirs = append(dirs, c.dir)
	}
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			g.t.Error(err)
			return
		}
	}
}

func (g *engine) stormDir(i int) string {
	return filepath.Join(g.mount, "docker", fmt.Sprintf("%064x", i))
}

// inRealTime are the threads of weird that the kernel runs before others.
func (w *weird) inRealTime() (threads []int) {
	w.t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", w.cmd.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, one := range all {
		tid, err := strconv.Atoi(one.Name())
		if err != nil {
			w.t.Fatal(err)
		}
		attr, err := unix.SchedGetAttr(tid, 0)
		if err == nil && attr.Policy == unix.SCHED_FIFO { // else it has ended
			threads = append(threads, tid)
		}
	}
	return threads
}

// spent is how long a thread of weird has run.
func (w *weird) spent(tid int) time.Duration {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", w.cmd.Process.Pid, tid)) // proc_pid_schedstat(5)
	if err != nil {
		w.t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return time.Duration(n)
}
