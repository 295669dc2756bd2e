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

// A signal that a process has blocked counts if it may be about to wait for it.
func TestSignalsThatAreBlocked(t *testing.T) {
	const status = "State:\tS (sleeping)\nThreads:\t1\nSigPnd:\t0\nShdPnd:\t%x\nSigBlk:\t%x\nSigIgn:\t0\nSigCgt:\t0\n"
	bit := func(s unix.Signal) uint64 { return 1 << (s - 1) }
	for s, want := range map[unix.Signal]Signals{
		unix.SIGALRM: {Waiting: bit(unix.SIGALRM), Asking: bit(unix.SIGALRM)},
		unix.SIGTERM: {Waiting: bit(unix.SIGTERM), Asking: bit(unix.SIGTERM)},
		unix.SIGUSR1: {},
	} {
		file := filepath.Join(t.TempDir(), "status")
		if err := os.WriteFile(file, fmt.Appendf(nil, status, bit(s), bit(s)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _, err := signalsIn(file); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", unix.SignalName(s), got, err, want)
		}
	}
}
