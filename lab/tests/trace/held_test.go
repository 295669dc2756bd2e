package trace_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// If a tracer or seccomp holds a task before a call begins, that time does not count for the
// call before.
func TestHeldBeforeACall(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.FS("ext4"), lab.Command("dd"))
	t.Parallel() // it sleeps
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	const hold = 10 * time.Millisecond
	r, _ := traced(t, "cgroup:/"+g.name, func() done {
		slowly(t, hold, exec.Command("sh", "-c", `echo $$ >"$0"/cgroup.procs; exec dd if=/dev/zero of="$1" bs=64k count=50 status=none`, g.io, filepath.Join(disk.Dir, "f")))
		return done{}
	})
	w := r.of(t, "write")
	if w.Count < 50 {
		t.Errorf("%d writes seen, dd made 50", w.Count)
	}
	own := w.Seconds - w.Split["run_queue"] // a busy machine has waits for a processor in them
	if most := 0.1 * hold.Seconds() * float64(w.Count); own > most {
		lab.Measures(t)
		t.Errorf("%d writes took %.3f s, want less than %.3f s: they have waits of %s that are not theirs", w.Count, own, most, hold)
	}
}

// slowly runs a command and holds it for a time before each of its system calls.
func slowly(t *testing.T, hold time.Duration, cmd *exec.Cmd) {
	t.Helper()
	runtime.LockOSThread() // who traces is a thread
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	for entry := false; ; entry = !entry {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		if status.Exited() {
			if status.ExitStatus() != 0 {
				t.Errorf("%v: exit status %d", cmd.Args, status.ExitStatus())
			}
			return
		}
		if entry {
			time.Sleep(hold)
		}
		if err := syscall.PtraceSyscall(pid, 0); err != nil {
			t.Fatal(err)
		}
	}
}
