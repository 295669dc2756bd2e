package limits_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/process"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// sets says how often a limit is set on a running writer, each way of writing.
const sets = "WEIR_SETS"

// A limit that is set on a writer under way holds from then on: over the first four seconds,
// for a process in a group and for a systemd unit. Buffered writes are those that the
// kernel holds.
func TestSetOnARunningWriter(t *testing.T) {
	for _, path := range []load.Path{load.Direct, load.Sync, load.Buffered} {
		t.Run(string(path), func(t *testing.T) {
			needs, size := []lab.Requirement{lab.Root, lab.Rates, lab.Newest, lab.FS("ext4")}, int64(256<<20)
			if path == load.Buffered {
				size = 2 << 30 // the writer does not come to pages that are dirty already: the flusher would wait for more
				needs = append(needs, lab.V2, lab.Memory)
			}
			if path != load.Direct && os.Getenv(sets) == "" {
				needs = append(needs, lab.Whole)
			}
			e := lab.Need(t, needs...)
			disk := lab.Disk(t, lab.FS("ext4"))
			for i := range lab.Times(t, sets, 1) {
				lab.Ratio(t, fmt.Sprintf("%s, time %d", path, i+1), setOnRunning, lab.Written, func() float64 {
					job := load.Job{Path: path, File: fileIn(t, disk.Dir, "f"), Block: 64 << 10, Size: size, For: time.Hour}
					return firstSeconds(t, e, disk, job)
				})
			}
		})
	}
}

const (
	setOnRunning = 8e6 // bytes a second
	firstOf      = 4 * time.Second
	requestMost  = 8 << 20 // bytes that writeback sends at once
)

// firstSeconds starts a writer, sets a limit on it, and measures what it writes from then on.
func firstSeconds(t *testing.T, e environ.Environ, disk *lab.TestDisk, job load.Job) float64 {
	t.Helper()
	// On v2 the pages and the inode of a file stay with the group that made them: each group has its own.
	defer func() { _ = os.Remove(job.File) }() // it is there, or the writer has ended, which is told
	pid, target, stop := running(t, e, job)
	defer stop()
	done := func() int64 {
		_, written := lab.DeviceBytes(t, disk.Number)
		return written
	}
	count := func() int64 { return dirtied(t, pid) } // the disk gets the journal of the first writes as well
	wrote := count
	if job.Path == load.Buffered {
		wrote = done
	}
	before := wrote()
	until(t, "the writer", 20*time.Second, func() bool { return wrote()-before > 16<<20 })
	if job.Path == load.Buffered {
		count = charged(t, noted(e.Cgroups.Unified, fmt.Sprintf("/proc/%d/cgroup", pid)), disk)
	}
	weir(t, "set", target, "--quiet", "--hold", "kernel", "--write", fmt.Sprint(int(setOnRunning)), "--on", disk.Dir)
	defer weir(t, "clear", target, "--quiet") // else the disk gets what waits for the limit beside the next writer
	defer lab.WatchWriter(t, pid, count)()
	began, before := time.Now(), count()
	// What the disk had before the limit is done by the first moment after a quarter.
	_, early := passes(count, began, firstOf/4)
	earlyDone := done()
	at, now := passes(count, began, firstOf)
	if own, all := now-early, done()-earlyDone; job.Path == load.Buffered && all > own*105/100+requestMost {
		t.Errorf("the disk wrote %d bytes, of which the group was charged %d", all, own)
	}
	return float64(now-before) / at.Seconds()
}

// passes waits until something more is counted after so long, and returns when that was, and the
// count. Writeback sends up to 8 MiB at once, which the throttle lets go, and the kernel charges,
// when the time for all of it has passed.
func passes(count func() int64, began time.Time, after time.Duration) (at time.Duration, bytes int64) {
	time.Sleep(time.Until(began.Add(after)))
	for last := count(); ; time.Sleep(time.Millisecond) {
		at, bytes = time.Since(began), count()
		if bytes != last || at >= after+firstOf {
			return at, bytes
		}
	}
}

// charged is what a group was charged for writing to a disk. A request counts as a whole in the
// moment in which the throttle lets it go: the disk does it in pieces, and a rate up to the first of
// them lacks the others.
func charged(t *testing.T, dir string, disk *lab.TestDisk) func() int64 {
	t.Helper()
	counter := lab.Charged(dir, disk.Number)
	return func() int64 {
		bytes, known := counter()
		if !known {
			t.Errorf("%s: no io.stat", dir)
		}
		return bytes
	}
}

// running starts a writer, in a unit where systemd is, else in a group of its own. Each has the io
// controller from the start: what a group dirties without it, the kernel does not charge to it later.
func running(t *testing.T, e environ.Environ, job load.Job) (pid int, target string, stop func()) {
	t.Helper()
	command := append([]string{"weir", "__load"}, job.Args()...)
	const name = "weir-running"
	if e.Has(string(lab.Systemd)) {
		const unit = name + ".service"
		tool(t, "systemd-run", append([]string{"--quiet", "--collect", "--property=IOAccounting=yes", "--unit=" + unit}, command...)...)
		text, err := exec.Command("systemctl", "show", "--value", "-p", "MainPID", unit).Output()
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return pid, "unit:" + unit, func() { tool(t, "systemctl", "stop", unit) }
	}
	root := e.Cgroups.Blkio
	if root == "" {
		root = e.Cgroups.Unified
	}
	dir := filepath.Join(root, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", append([]string{"-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, dir}, command...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, "cgroup:/" + name, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		lab.Await(t, 2*time.Minute, "group "+dir+" to be empty", func() bool { return os.Remove(dir) == nil })
	}
}

// dirtied is what a process has written, to memory or to disk.
func dirtied(t *testing.T, pid int) int64 {
	t.Helper()
	f, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	io, err := f.IO()
	if err != nil {
		t.Fatal(err)
	}
	return int64(io.WriteBytes)
}
