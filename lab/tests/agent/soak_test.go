package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	// soakLook is how often weird's size is looked at.
	soakLook = time.Second
)

// A size is what weird has at one moment.
type size struct {
	rss                  int64 // bytes
	descriptors, watches int
}

// Containers start and end for long: weird's memory, descriptors and watches do not grow. The first third of the time
// counts as the beginning. WEIR_SOAK says how many containers there are.
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
	var sizes []size
	began, looked := time.Now(), time.Now()
	before := w.cpu()
	for i := range n {
		next := began.Add(time.Duration(i) * time.Second / soakEachSec)
		time.Sleep(time.Until(next))
		running = append(running, g.start(fmt.Sprint("web-", i), map[string]string{"tier": "gold"}))
		if len(running) > soakRunning {
			g.end(running[0])
			g.remove(running[0])
			running = running[1:]
		}
		if time.Since(looked) > soakLook {
			looked = time.Now()
			sizes = append(sizes, w.size())
		}
	}
	took := time.Since(began)
	busy := w.cpu() - before
	t.Logf("%d containers in %v: %.1f %% of a processor", n, took.Round(time.Second), 100*float64(busy)/float64(took))
	third := len(sizes) / 3
	if third < 2 {
		t.Fatalf("only %d looks at its size", len(sizes))
	}
	first, last := median(sizes[third/2:third+third/2]), median(sizes[2*third:])
	t.Logf("in the middle of the first half: %v", first)
	t.Logf("in the last third:               %v", last)
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

// median is the median of each part.
func median(all []size) (m size) {
	of := func(part func(size) int64) int64 {
		var values []int64
		for _, s := range all {
			values = append(values, part(s))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return size{of(func(s size) int64 { return s.rss }), int(of(func(s size) int64 { return int64(s.descriptors) })), int(of(func(s size) int64 { return int64(s.watches) }))}
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
