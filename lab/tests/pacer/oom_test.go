package pacer_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// If the kernel kills the pacer, a guard or all of them for want of memory, in a memory group of
// their own, no process stays paused, and the limit is held afterwards.
func TestThePacerWithoutMemory(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Root, lab.V1, lab.Rates, lab.Lane("native"), lab.FS("ext4"))
	at := slices.IndexFunc(e.Cgroups.Mounted1, func(dir string) bool { return strings.HasSuffix(dir, "memory") })
	if at < 0 {
		t.Skip("v1's memory controller is not mounted, so that nothing can want memory by itself")
	}
	small := filepath.Join(e.Cgroups.Mounted1[at], "lab-small")
	lab.Cgroup(t, small)
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate, seconds = 20_000_000, 4
	file := filepath.Join(disk.Dir, "f")
	ctx, stop := context.WithCancel(t.Context())
	run := exec.CommandContext(ctx, "weir", "run", "--name", "wants", "--write", fmt.Sprint(rate), "--on", disk.Dir, "--", "sh", "-c", "exec "+fill(file, 2<<30))
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = run.Wait()
	}()
	lab.Await(t, 20*time.Second, "the first writes", func() bool { return size(file) > 0 })
	for i := range lab.Times(t, "WEIR_KILLS", 3) {
		whom := [][]string{{"__pacer"}, {"__guard"}, {"__pacer", "__guard"}}[i%3]
		var pids []int
		for _, arg := range whom {
			pids = append(pids, lab.Called(t, arg)...)
		}
		killed := starve(t, small, pids)
		t.Logf("of %v, killed: %t", whom, killed)
		if len(whom) == 2 { // nobody is left to let the group go: the next weir does
			weir(t, "show", "--for", "0")
		}
		before, began := size(file), time.Now()
		for size(file) == before {
			if time.Since(began) > stoppedMax(e) {
				t.Fatalf("round %d, of %v: nothing was written for %s", i, whom, time.Since(began))
			}
			time.Sleep(time.Millisecond)
		}
		lab.Await(t, 20*time.Second, "another pacer and its guards", func() bool {
			return len(lab.Called(t, "__pacer")) == 1 && len(lab.Called(t, "__guard")) == guards
		})
		time.Sleep(time.Second) // in which what was written meanwhile is paid for
		lab.Ratio(t, fmt.Sprintf("after a kill of %v", whom), rate, lab.Written, func() float64 {
			before, began := size(file), time.Now()
			time.Sleep(seconds * time.Second)
			return float64(size(file)-before) / time.Since(began).Seconds()
		})
	}
	if oomKills(t, small) == 0 {
		t.Error("the kernel has killed nobody")
	}
}

// starve has processes want memory that their group does not have, until they are gone, or for as
// long as they may do with what they have.
func starve(t *testing.T, small string, pids []int) (killed bool) {
	t.Helper()
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0); err != nil && !os.IsNotExist(err) {
			t.Logf("%s: %v", file, err) // one that has ended
		}
	}
	write(small+"/memory.limit_in_bytes", "0")
	for _, pid := range pids {
		write(fmt.Sprintf("/proc/%d/oom_score_adj", pid), "0") // they are spared otherwise
		write(small+"/cgroup.procs", fmt.Sprint(pid))
	}
	gone := func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool {
			_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
			return err == nil
		})
	}
	for began := time.Now(); !gone() && time.Since(began) < 6*time.Second; {
		_ = exec.Command("timeout", "2", "weir", "show", "--for", "0").Run() // to answer takes memory
	}
	return gone()
}

// oomKills is how many processes of a group the kernel has killed.
func oomKills(t *testing.T, group string) (kills int) {
	t.Helper()
	text, err := os.ReadFile(group + "/memory.oom_control")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if count, is := strings.CutPrefix(line, "oom_kill "); is {
			if kills, err = strconv.Atoi(strings.TrimSpace(count)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kills
}
