package limits_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// inMounts runs commands in a mount namespace of their own, in which a mount point is 280
// directories down (a line of 70 kB), one file and one group that is removed are mounted
// again, and there are thousands of other mounts.
func inMounts(t *testing.T, many int, run func() error) {
	t.Helper()
	dir := t.TempDir()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
				return fmt.Errorf("unshare: %w", err)
			}
			if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return fmt.Errorf("make private: %w", err)
			}
			if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
				return err
			}
			if err := unix.Chdir(dir); err != nil {
				return err
			}
			for n := range many {
				name := fmt.Sprintf("m%d", n)
				if err := unix.Mkdir(name, 0o755); err != nil {
					return err
				}
				if err := unix.Mount("none", name, "ramfs", 0, ""); err != nil {
					return fmt.Errorf("mount %d: %w", n, err)
				}
			}
			for range 280 {
				name := strings.Repeat("d", 250)
				if err := unix.Mkdir(name, 0o755); err != nil {
					return err
				}
				if err := unix.Chdir(name); err != nil {
					return err
				}
			}
			if err := unix.Mount("none", ".", "tmpfs", 0, ""); err != nil {
				return fmt.Errorf("mount far down: %w", err)
			}
			if err := unix.Chdir("/"); err != nil {
				return err
			}
			return run()
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Mounts that a user made in a namespace of its own do not stop weir, neither on the host
// nor when weir is asked for a process in that namespace.
func TestOthersMounts(t *testing.T) {
	e := lab.Need(t, lab.Root)
	group := e.Cgroups.Blkio
	if e.Cgroups.IOInV2 {
		group = e.Cgroups.Unified
	}
	disk := lab.Disk(t, lab.FS("ext4"))
	if err := os.WriteFile(filepath.Join(disk.Dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("sleep", "600")
	inMounts(t, 2000, func() error {
		file, err := filepath.Glob(filepath.Join(group, "cgroup.procs"))
		if err != nil || len(file) == 0 {
			return fmt.Errorf("no file of a group in %s: %w", group, err)
		}
		if err := unix.Mount(file[0], filepath.Join(disk.Dir, "file"), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount a file of a group: %w", err)
		}
		for _, args := range [][]string{{"show", "--for", "0"}, {"why", "--on", disk.Dir}, {"run", "--write", "9MB/s", "--on", disk.Dir, "--", "true"}} {
			if out, err := exec.Command("weir", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("weir %v: %w\n%s", args, err, out)
			}
		}
		return holder.Start()
	})
	t.Cleanup(func() { _, _ = holder.Process.Kill(), holder.Wait() })
	spec := fmt.Sprintf("pid:%d", holder.Process.Pid)
	out, err := exec.Command("weir", "set", spec, "--write", "9MB/s", "--whole-cgroup", "--dry-run").CombinedOutput()
	if err != nil || !strings.Contains(string(out), disk.Number.String()+" ") || strings.Count(string(out), "\n") > 60 {
		t.Errorf("weir set %s: %v\n%s", spec, err, out)
	}
}
