package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A stopped process has the signals pending that it would take; those that it ignores, and
// those that end nobody, do not end it.
func TestSignalsOf(t *testing.T) {
	cmd := exec.Command("sh", "-c", "trap '' HUP; trap : USR1; kill -STOP $$; sleep 100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		var status unix.WaitStatus
		if pid, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED|unix.WNOHANG, nil); err != nil || pid != 0 && !status.Stopped() || time.Since(began) > 10*time.Second {
			t.Fatalf("it does not stop: %v %v", status, err)
		} else if pid != 0 {
			break
		}
	}
	for _, s := range []unix.Signal{unix.SIGHUP, unix.SIGUSR1, unix.SIGTERM} {
		if err := unix.Kill(cmd.Process.Pid, s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := SignalsOf(cmd.Process.Pid)
	if want := (Signals{Waiting: 1<<(unix.SIGUSR1-1) | 1<<(unix.SIGTERM-1), Ending: 1 << (unix.SIGTERM - 1), Parent: os.Getpid()}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

// leaderless has this test's program end its first thread, and go on with the others.
const leaderless = "WEIR_TEST_LEADERLESS"

func TestMain(m *testing.M) {
	if os.Getenv(leaderless) == "" {
		os.Exit(m.Run())
	}
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // of this thread alone
}

// init has main run on the first thread.
func init() {
	if os.Getenv(leaderless) != "" {
		runtime.LockOSThread()
	}
}

// A process whose first thread has ended, and no other, has not ended: the others take its signals.
func TestSignalsWithoutTheFirstThread(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), leaderless+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}()
	pid := cmd.Process.Pid
	status := fmt.Sprintf("/proc/%d/status", pid)
	await(t, "its first thread has ended", func() bool {
		first, threads, err := signalsIn(status)
		return err == nil && first.Ended && threads > 1
	})
	send := func(s unix.Signal) {
		if err := unix.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
	}
	send(unix.SIGSTOP)
	await(t, "the others have stopped", func() bool {
		states, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return err == nil && !slices.ContainsFunc(states, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && !strings.Contains(string(text), ") T ") && !strings.Contains(string(text), ") Z ")
		})
	})
	send(unix.SIGTERM)
	got, err := SignalsOf(pid)
	if want := (Signals{Waiting: bit(unix.SIGTERM), Asking: bit(unix.SIGTERM), Parent: os.Getpid()}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want) // Go catches SIGTERM
	}
	send(unix.SIGKILL)
	await(t, "it has ended", func() bool {
		got, err := SignalsOf(pid)
		return err == nil && got.Ended
	})
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%s: it has not come to that", what)
		}
	}
}

// bit is a set of one signal.
func bit(s unix.Signal) uint64 { return 1 << (s - 1) }

// A signal that a process has blocked counts if it may be about to wait for it. That a child has ended counts as
// a signal to end only where others are being ended.
func TestSignalsThatAreBlocked(t *testing.T) {
	const status = "State:\tS (sleeping)\nThreads:\t1\nSigPnd:\t0\nShdPnd:\t%x\nSigBlk:\t%x\nSigIgn:\t0\nSigCgt:\t%x\n"
	for _, c := range []struct {
		signal    unix.Signal
		blocked   bool // else it is caught
		want, end Signals
	}{
		{unix.SIGALRM, true, Signals{Waiting: bit(unix.SIGALRM), Asking: bit(unix.SIGALRM)}, Signals{}},
		{unix.SIGTERM, true, Signals{Waiting: bit(unix.SIGTERM), Asking: bit(unix.SIGTERM)}, Signals{}},
		{unix.SIGUSR1, true, Signals{}, Signals{}},
		{unix.SIGCHLD, true, Signals{}, Signals{Waiting: bit(unix.SIGCHLD), Asking: bit(unix.SIGCHLD)}},
		{unix.SIGCHLD, false, Signals{Waiting: bit(unix.SIGCHLD)}, Signals{Waiting: bit(unix.SIGCHLD), Asking: bit(unix.SIGCHLD)}},
	} {
		file := filepath.Join(t.TempDir(), "status")
		blocked, caught := bit(c.signal), uint64(0)
		if !c.blocked {
			blocked, caught = caught, blocked
		}
		if err := os.WriteFile(file, fmt.Appendf(nil, status, bit(c.signal), blocked, caught), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.signal == unix.SIGCHLD {
			c.want.Child, c.end.Child = bit(c.signal), bit(c.signal)
		} else {
			c.end = c.want
		}
		got, _, err := signalsIn(file)
		if ends := got.Ends(); err != nil || got != c.want || ends != c.end {
			t.Errorf("%s, blocked %t: %+v, %v, and while others are ended %+v; want %+v, %+v", unix.SignalName(c.signal), c.blocked, got, err, ends, c.want, c.end)
		}
	}
}
