package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

const (
	// soakEachSec is how many containers start, and end, in a second.
	soakEachSec = 20
	// soakRunning is how many run at a time.
	soakRunning = 20
	// soakRests is for how long weird's size is the same once it has done what was to be done.
	soakRests = 2 * time.Second
)

// A size is what weird has at one moment.
type size struct {
	rss                  int64 // bytes
	descriptors, watches int
}

// Containers start and end for long: weird's memory, descriptors and watches do not grow. Its size is that of moments in which
// it rests: after the first third of the containers, which counts as the beginning, and after the last one. WEIR_SOAK says
// how many there are.
func TestAgentSoak(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Root, lab.NoSystemd)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	// Reads: the pacer is about writes, and is a process of its own.
	w := newWeird(t, g, on(disk, map[string]string{"small": "read: 3MB/s, write-iops: 100"}, "assign: [{docker: 'web-*', plan: small}]\n"))
	runInMemory(t)
	w.start()
	n := lab.Times(t, "WEIR_SOAK", 600)
	var running []*container
	var first size
	began, before, rested := time.Now(), w.cpu(), time.Duration(0)
	for i := range n {
		if i == n/3 {
			since := time.Now()
			first = w.rests()
			rested = time.Since(since)
		}
		next := began.Add(rested + time.Duration(i)*time.Second/soakEachSec)
		time.Sleep(time.Until(next))
		running = append(running, g.start(fmt.Sprint("web-", i), map[string]string{"tier": "gold"}))
		if len(running) > soakRunning {
			g.end(running[0])
			g.remove(running[0])
			running = running[1:]
		}
	}
	took := time.Since(began) - rested
	busy := w.cpu() - before
	t.Logf("%d containers in %v: %.1f %% of a processor", n, took.Round(time.Second), 100*float64(busy)/float64(took))
	last := w.rests()
	t.Logf("after the first third: %v", first)
	t.Logf("after the last one:    %v", last)
	const memorySlack, slack = 4 << 20, 4
	if last.rss > first.rss+memorySlack || last.descriptors > first.descriptors+slack || last.watches > first.watches+slack {
		t.Error("it grows")
	}
	if c := w.status().Counts; c.Missed != 0 || c.Failures != 0 {
		t.Errorf("%+v\n%s", c, w.lately())
	}
	for _, c := range running {
		g.end(c)
	}
}

func (s size) String() string {
	return fmt.Sprintf("%.1f MiB, %d descriptors, %d watches", float64(s.rss)/(1<<20), s.descriptors, s.watches)
}

// rests waits until weird has done what was to be done, and looks at it then.
func (w *weird) rests() (now size) {
	w.t.Helper()
	lab.Await(w.t, patience, "weird to rest", func() bool {
		now = w.size()
		for since := time.Now(); time.Since(since) < soakRests; time.Sleep(soakRests / 10) {
			if s := w.size(); s.descriptors != now.descriptors || s.watches != now.watches {
				return false
			}
		}
		return true
	})
	return now
}

// size looks at weird.
func (w *weird) size() size {
	w.t.Helper()
	s := size{rss: w.rss()}
	dir := fmt.Sprintf("/proc/%d/fdinfo", w.cmd.Process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, one := range entries {
		if text, err := os.ReadFile(filepath.Join(dir, one.Name())); err == nil { // else it is closed by now
			s.descriptors++
			s.watches += strings.Count(string(text), "inotify wd:")
		}
	}
	return s
}
