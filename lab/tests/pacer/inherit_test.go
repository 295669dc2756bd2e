package pacer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// weir's background processes keep nothing that their caller had open: a lock that the
// caller took with flock(1) is free when the caller releases it. The command keeps its own
// files.
func TestHelpersInheritNothing(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Newest, lab.FS("ext4"))
	if !e.Has(string(lab.Systemd)) { // with which another process stays
		lab.Need(t, lab.Once)
	}
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
	// ext4 writes out what is truncated and filled again when it is closed, and that waits in the
	// throttle after the command's end: for some seconds here.
	file := filepath.Join(disk.Dir, "queued")
	fill := "dd if=/dev/zero of=" + file + " bs=1M count=8 2>/dev/null"
	if out, err := exec.Command("sh", "-c", fill+" && sync -f "+file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, args := range [][]string{
		{"set", "cgroup:/lab-heir", "--write", "10MB/s", "--hold", "pacer", "--on", disk.Dir},
		{"run", "--hold", "kernel", "--write", "2MB/s", "--on", disk.Dir, "--", "sh", "-c", fill + " && echo kept >&3"},
	} {
		cmd := exec.Command("weir", args...)
		cmd.ExtraFiles = []*os.File{lock}
		if out, err := cmd.CombinedOutput(); err != nil {
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
	last := "__sweep" // it waits for what the command has left
	if e.Has("systemd") {
		last = "__keep" // in a scope its keeper does
	}
	for _, kind := range []string{"__pacer", "__guard", last} {
		pids := lab.Called(t, kind)
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
