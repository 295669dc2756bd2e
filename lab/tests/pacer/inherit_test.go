package pacer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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
	lock := filepath.Join(t.TempDir(), "lock")
	script := "exec 9>" + lock + "; flock 9; weir set cgroup:/lab-heir --write 10MB/s --hold pacer --on " + disk.Dir +
		" && weir run --write 10MB/s --on " + disk.Dir + " -- sh -c '(exec 9>&-; sleep 20) & echo kept >&9'"
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(lock); err != nil || string(text) != "kept\n" {
		t.Errorf("the command wrote %q, %v through its caller's descriptor", text, err)
	}
	lab.Await(t, 10*time.Second, "the lock to be free", func() bool { return exec.Command("flock", "--nonblock", lock, "true").Run() == nil })
	for _, kind := range []string{"__pacer", "__guard", "__sweep"} {
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
