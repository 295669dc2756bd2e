package pacer

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/process"
)

// leaderless has this test's program end its first thread, and go on with the others.
const leaderless = "WEIR_TEST_LEADERLESS"

// init has main run on the first thread.
func init() {
	if os.Getenv(leaderless) != "" {
		runtime.LockOSThread()
	}
}

// A thread that has ended is in no group. If it was the first one, the process is where the others are.
func TestAllThreadsButTheFirst(t *testing.T) {
	h := newHost(t, cgroupfs.V1)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), leaderless+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid := cmd.Process.Pid
	h.until("its first thread has ended", func() bool {
		stat, err := process.ReadStat(pid)
		return err == nil && stat.Ended
	})
	in := func(leave int) bool { // of the other threads, so many are elsewhere
		others := slices.DeleteFunc(threadsOf(pid), func(tid int) bool { return tid == pid })
		text := ""
		for _, tid := range others[min(leave, len(others)):] {
			text += fmt.Sprintln(tid)
		}
		h.Write(h.trees[0]+"/a/tasks", text)
		return threadsIn(h.Group("/a"), pid)
	}
	h.until("all of the others are there", func() bool { return in(0) }) // it may begin one just now
	if in(1) {
		t.Error("one of them is elsewhere, and all are there")
	}
}

func endFirstThread() { _, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) }
