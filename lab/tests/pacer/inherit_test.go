package pacer_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// What weir leaves in the background holds nothing of its caller's: a lock that the caller
// took with flock(1) is free when the caller lets go of it. The command keeps its own.
func TestHelpersInheritNothing(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	group := filepath.Join(e.Cgroups.Blkio, "lab-heir")
	lab.Cgroup(t, group)
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	if err := os.WriteFile(group+"/cgroup.procs", fmt.Append(nil, sleeper.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"set", "cgroup:/lab-heir", "--write", "10MB/s", "--hold", "pacer", "--on", disk.Dir},
		// What env starts has no copy of the descriptor, as a shell's own sleep would.
		{"run", "--write", "10MB/s", "--on", disk.Dir, "--", "sh", "-c", "env sleep 20 3>&- & echo kept >&3"},
	} {
		cmd := exec.Command("weir", args...)
		cmd.ExtraFiles, cmd.WaitDelay = []*os.File{lock}, time.Second // what the command leaves has its output
		if out, err := cmd.CombinedOutput(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			t.Fatalf("weir %s: %v\n%s", args[0], err, out)
		}
	}
	if text, err := os.ReadFile(lock.Name()); err != nil || string(text) != "kept\n" {
		t.Errorf("the command wrote %q, %v through its caller's descriptor", text, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := os.Open(lock.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	lab.Await(t, 10*time.Second, "the lock to be free", func() bool { return unix.Flock(int(again.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil })
	last := "__sweep" // what waits for what the command has left
	if e.Has("systemd") {
		last = "__keep" // a scope's keeper does
	}
	for _, kind := range []string{"__pacer", "__guard", last} {
		pids := running(t, kind)
		if len(pids) == 0 {
			t.Errorf("no %s runs", kind)
		}
		for _, pid := range pids {
			if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || dir != "/" {
				t.Errorf("%s is in %s, %v", kind, dir, err)
			}
		}
	}
	weir(t, "clear", "cgroup:/lab-heir")
}
