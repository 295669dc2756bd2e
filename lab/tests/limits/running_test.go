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
			needs := []lab.Requirement{lab.Root, lab.Rates, lab.Newest, lab.FS("ext4")}
			if path == load.Buffered {
				needs = append(needs, lab.V2, lab.Memory)
			}
			if path != load.Direct && os.Getenv(sets) == "" {
				needs = append(needs, lab.Whole)
			}
			e := lab.Need(t, needs...)
			disk := lab.Disk(t, lab.FS("ext4"))
			for i := range lab.Times(t, sets, 1) {
				lab.Ratio(t, fmt.Sprintf("%s, time %d", path, i+1), setOnRunning, lab.Written, func() float64 {
					job := load.Job{Path: path, File: fileIn(t, disk.Dir, "f"), Block: 64 << 10, Size: 256 << 20, For: time.Hour}
					return firstSeconds(t, e, disk, job)
				})
			}
		})
	}
}

const (
	setOnRunning = 8e6 // bytes a second
	firstOf      = 4 * time.Second
)

// firstSeconds starts a writer, sets a limit on it, and measures what it writes from then on.
func firstSeconds(t *testing.T, e environ.Environ, disk *lab.TestDisk, job load.Job) float64 {
	t.Helper()
	pid, target, stop := running(t, e, job)
	defer stop()
	count := func() int64 { return dirtied(t, pid) } // the disk gets the journal of the first writes as well
	if job.Path == load.Buffered {
		count = func() int64 {
			_, written := lab.DeviceBytes(t, disk.Number)
			return written
		}
	}
	before := count()
	until(t, "the writer", 20*time.Second, func() bool { return count()-before > 16<<20 })
	weir(t, "set", target, "--quiet", "--hold", "kernel", "--write", fmt.Sprint(int(setOnRunning)), "--on", disk.Dir)
	defer lab.WatchWriter(t, pid, count)()
	began, before := time.Now(), count()
	time.Sleep(firstOf)
	// Writeback sends up to 8 MiB at once, which the throttle lets go when the time for all of it
	// has passed: so up to the moment when something goes.
	for last := count(); count() == last && time.Since(began) < 2*firstOf; {
		time.Sleep(time.Millisecond)
	}
	return float64(count()-before) / time.Since(began).Seconds()
}

// running starts a writer, in a unit where systemd is, else in a group of its own.
func running(t *testing.T, e environ.Environ, job load.Job) (pid int, target string, stop func()) {
	t.Helper()
	command := append([]string{"weir", "__load"}, job.Args()...)
	const name = "weir-running"
	if e.Has(string(lab.Systemd)) {
		const unit = name + ".service"
		tool(t, "systemd-run", append([]string{"--quiet", "--collect", "--unit=" + unit}, command...)...)
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
