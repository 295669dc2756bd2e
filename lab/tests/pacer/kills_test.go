package pacer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// stoppedMax is how long a group may stay stopped after a kill, or after the next weir
// where pacer and guard were killed both. A guest stands still itself now and then.
func stoppedMax(e environ.Environ) time.Duration {
	if e.Lane == "native" {
		return time.Second
	}
	return e.Patience(5 * time.Second)
}

// If the pacer, its guard or both are killed, no process stays paused, no writer is lost,
// and the limit is kept.
func TestKillsOfThePacer(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Long, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	rate := lab.Scaled(e, 40<<20) // what is written in a pacer's first 10 ms is paid for in a moment (at 4 MiB/s in 1.9 s)
	file := filepath.Join(disk.Dir, "f")
	// It writes the same 64 MiB again and again, each time to new pages.
	script := "while :; do dd if=/dev/zero of=" + file + " bs=16384 count=4096 iflag=fullblock status=none; rm " + file + "; done"
	ctx, stop := context.WithCancel(t.Context())
	run := exec.CommandContext(ctx, "weir", "run", "--name", "paced", "--write", fmt.Sprint(rate), "--on", disk.Dir, "--", "sh", "-c", script)
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = run.Wait()
	})
	lab.Await(t, 20*time.Second, "the first writes", func() bool { return size(file) > 0 })
	for _, pid := range lab.Called(t, "__pacer") { // the kernel closes the highest number first, and inotify is slow
		if lock, slow := descriptor(t, pid, "/pacer.lock"), descriptor(t, pid, "anon_inode:inotify"); lock < slow {
			t.Errorf("the pacer has its lock as descriptor %d, and inotify as %d: if it is killed, that delays the next one", lock, slow)
		}
	}
	kills := 6
	if e.Lane != "native" { // where an end and a start take seconds
		kills = 3
	}
	for i := range lab.Times(t, "WEIR_KILLS", kills) {
		time.Sleep(rand.N(50 * time.Millisecond))
		whom := [][]string{{"__pacer"}, {"__guard"}, {"__pacer", "__guard"}}[i%3]
		for _, arg := range whom {
			send(t, unix.SIGKILL, lab.Called(t, arg)...)
		}
		if len(whom) == 2 {
			weir(t, "show", "--for", "0")
		}
		before, began := size(file), time.Now()
		for size(file) == before {
			if time.Since(began) > stoppedMax(e) {
				t.Fatalf("kill %d, of %v: nothing was written for %s", i, whom, time.Since(began))
			}
			time.Sleep(time.Millisecond)
		}
		lab.Await(t, 20*time.Second, "another pacer and its guard", func() bool {
			return len(lab.Called(t, "__pacer")) > 0 && len(lab.Called(t, "__guard")) > 0
		})
	}
	stop()
	if err := run.Wait(); err == nil {
		t.Error("weir run ended by itself")
	}
	lab.Await(t, 20*time.Second, "the end of the pacer", func() bool {
		return len(lab.Called(t, "__pacer"))+len(lab.Called(t, "__guard")) == 0
	})
	left, err := filepath.Glob("/sys/fs/cgroup/freezer/weir-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// descriptor is the number of what a process has open whose name ends so.
func descriptor(t *testing.T, pid int, name string) int {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if to, _ := os.Readlink(filepath.Join(dir, entry.Name())); strings.HasSuffix(to, name) { // one that is closed by now is none
			number, err := strconv.Atoi(entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("process %d has no %s open", pid, name)
	return -1
}

// send sends a signal to processes that may have ended.
func send(t *testing.T, s unix.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, s); err != nil && err != unix.ESRCH {
			t.Fatal(err)
		}
	}
}

const guards = 2

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}
