package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
