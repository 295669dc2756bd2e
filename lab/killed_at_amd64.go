package lab

import (
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// telling are the system calls by which weir changes something outside of itself, or asks
// somebody to: before each of them is a point at which to be killed is different.
var telling = []uint64{unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_SENDMSG,
	unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT}

// KilledAt runs weir and kills it with SIGKILL as it enters the n-th of those calls that it
// makes, from 1. It reports whether that came to pass; else weir has ended by itself, with 0.
// The processes that weir starts are not touched.
func KilledAt(t testing.TB, n int, args ...string) (killed bool) {
	t.Helper()
	runtime.LockOSThread() // who traces is a thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command("weir", args...)
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	var status unix.WaitStatus
	if _, err := wait(pid, &status); err != nil || !status.Stopped() {
		t.Fatalf("trace weir: %v, %v", err, status)
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		t.Fatalf("trace weir: %v", err)
	}
	entered := map[int]bool{} // by thread: it is in a call
	next, signal := pid, 0
	for calls := 0; ; {
		_ = unix.PtraceSyscall(next, signal) // it may have been killed
		tid, err := wait(-1, &status)
		if err != nil {
			t.Fatalf("trace weir: %v", err)
		}
		next, signal = tid, 0
		switch {
		case tid == pid && (status.Exited() || status.Signaled()):
			_ = cmd.Wait() // fails: it has been waited for; but it closes what it has open
			if !killed && status.ExitStatus() != 0 {
				t.Fatalf("weir %v: status %d before it was killed\n%s", args, status.ExitStatus(), &said)
			}
			return killed
		case !status.Stopped():
		case status.StopSignal() == unix.SIGTRAP|0x80:
			if entered[tid] = !entered[tid]; !entered[tid] {
				continue
			}
			var regs unix.PtraceRegs
			if unix.PtraceGetRegs(tid, &regs) == nil && slices.Contains(telling, regs.Orig_rax) {
				if calls++; calls == n {
					killed = true
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
		case status.StopSignal() != unix.SIGTRAP && status.StopSignal() != unix.SIGSTOP:
			signal = int(status.StopSignal())
		}
	}
}

func wait(pid int, status *unix.WaitStatus) (tid int, err error) {
	for {
		tid, err = unix.Wait4(pid, status, unix.WALL, nil)
		if err != unix.EINTR {
			return tid, err
		}
	}
}
