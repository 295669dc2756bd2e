package agent

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// What weird costs beside 2,000 containers that run: while it takes them over, while nothing
// happens, and while ten of them a second are changed by hand. WEIR_GROUPS says how many there are.
func TestAgentsCost(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Root, lab.NoSystemd)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	n := lab.Times(t, "WEIR_GROUPS", 200)
	// Reads: the pacer is about writes, and is a process of its own.
	w := newWeird(t, g, on(disk, map[string]string{"small": "read: 3MB/s, write-iops: 100"}, "assign: [{docker: 'web-*', plan: small}]\n"))
	var all []*container
	for i := range n {
		all = append(all, g.start(fmt.Sprint("web-", i), map[string]string{"tier": "gold", "com.docker.compose.project": "shop"}))
	}
	began := time.Now()
	w.start()
	took, busy := time.Since(began), w.cpu()
	t.Logf("%d containers: limits in force after %v, with %v of a processor; %d MiB", n, took, busy, w.rss()>>20)
	measure := func(what string, window time.Duration, each func()) {
		before, until := w.cpu(), time.Now().Add(window)
		for time.Now().Before(until) {
			each()
		}
		t.Logf("%s: %.2f %% of a processor, %d MiB", what, 100*float64(w.cpu()-before)/float64(window), w.rss()>>20)
	}
	// Reasons are looked for of limits that do not hold.
	measure("nothing happens, the first half minute", 30*time.Second, func() { time.Sleep(time.Second) })
	measure("nothing happens", time.Minute, func() { time.Sleep(time.Second) })
	measure("nothing happens, the two minutes after that", 2*time.Minute, func() { time.Sleep(time.Second) })
	i := 0
	measure("ten changes by hand a second", 20*time.Second, func() {
		g.overwrite(all[i%len(all)], disk, 5_000_000)
		i++
		time.Sleep(100 * time.Millisecond)
	})
	began = time.Now()
	c := g.start("web-new", nil)
	lab.Await(t, patience, "the limit of one more", func() bool {
		text, err := os.ReadFile(strings.Replace(g.ruleFile(c), "write_bps", "read_bps", 1))
		return err == nil && strings.Contains(string(text), disk.Number.String()+" ")
	})
	t.Logf("one more is limited after %v", time.Since(began))
	if counts := w.status().Counts; counts.Missed != 0 || counts.Failures != 0 || counts.Repaired != uint64(i) {
		t.Errorf("%+v, want %d repaired", counts, i)
	}
}

// cpu is how long weird has used a processor.
func (w *weird) cpu() time.Duration {
	w.t.Helper()
	return cpuOf(w.t, w.cmd.Process.Pid)
}

// cpuOf is how long a process has used a processor.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime, see proc_pid_stat(5)
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ
}

// rss is the memory that weird has, in bytes.
func (w *weird) rss() int64 {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", w.cmd.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
