package latency_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// begin starts an experiment that is too large to end by itself, and waits for its writer.
func begin(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("weir", "trace", "--quiet", "--latency", dir, "--size", "3GiB", "--memory", "64MiB", "--write", "20MB/s")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 30*time.Second, "a process in the experiment's group", func() bool {
		for _, g := range lab.WeirGroups(t) {
			if pids, err := os.ReadFile(g + "/cgroup.procs"); err == nil && strings.TrimSpace(string(pids)) != "" {
				return true
			}
		}
		return false
	})
	return cmd
}

// A signal ends the experiment with a shell's status, and nothing is left at once; after
// SIGKILL the writer is gone too, and the next weir removes the group.
func TestEndedExperimentLeavesNothing(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.Once, lab.Rates, lab.NoSystemd, lab.Memory, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4")) // that it can be unmounted shows that no writer is left
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGKILL} {
		cmd := begin(t, disk.Dir)
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		var exit *exec.ExitError
		if s != unix.SIGKILL && (!errors.As(err, &exit) || exit.ExitCode() != 128+int(s)) {
			t.Errorf("after %v weir ended with %v, want status %d", s, err, 128+int(s))
		}
		if s == unix.SIGKILL {
			lab.Await(t, 20*time.Second, "the next weir to remove the group", func() bool {
				return exec.Command("weir", "show", "--quiet").Run() == nil && len(lab.WeirGroups(t)) == 0
			})
		}
		nothingIsLeft(t, disk.Dir)
	}
}

// A copy that does not fit is refused before anything is written.
func TestExperimentThatDoesNotFit(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.Once, lab.Rates, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	_, before := lab.DeviceBytes(t, disk.Number)
	out, err := exec.Command("weir", "trace", "--latency", disk.Dir).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(out), "write --size 3 GiB or less") {
		t.Errorf("10 GiB on a disk of 4: %v\n%s", err, out)
	}
	if _, after := lab.DeviceBytes(t, disk.Number); after-before > 16<<20 {
		t.Errorf("%d bytes were written", after-before)
	}
	nothingIsLeft(t, disk.Dir)
}
