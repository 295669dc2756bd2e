package pacer

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/fault"
)

// PacerArg is the argument that runs weir as the pacer: see Serve.
const PacerArg = "__pacer"

// A starting is a pacer that this process has started, and that does not answer yet. It is weird, a
// file that may be anything. So who waits for it looks after it.
type starting struct {
	pid    int
	at     time.Time
	looked time.Time
	pulse  *background.Pulse
}

// begin starts a pacer in the background. It ends at once if another one is running.
func begin() (*starting, error) {
	cmd := background.Command(PacerArg)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the pacer: %w", err)
	}
	now := time.Now()
	s := &starting{pid: cmd.Process.Pid, at: now, looked: now, pulse: background.PulseOf(cmd.Process.Pid)}
	return s, cmd.Process.Release()
}

// Start starts a pacer in the background. It ends at once if another one is running.
func Start() error {
	_, err := begin()
	return err
}

// failed is why it will not answer; nil: it may. A pacer that gives up waits for the lock of another
// one before that, and wakes all the time.
func (s *starting) failed() error {
	if s == nil || s.pid == 0 {
		return nil
	}
	var status unix.WaitStatus
	if pid, err := unix.Wait4(s.pid, &status, unix.WNOHANG, nil); pid == s.pid && err == nil {
		s.pid = 0
		if time.Since(s.at) < takeOverMax {
			return unfit("it ended at once (" + exit(status) + ")")
		}
		return nil
	}
	if now := time.Now(); now.Sub(s.looked) >= background.PulseEvery {
		s.looked = now
		if s.pulse.Hangs() {
			_ = unix.Kill(-s.pid, unix.SIGKILL) // it has a session of its own, and is not reaped yet
			_, _ = unix.Wait4(s.pid, nil, 0, nil)
			s.pid = 0
			return unfit("it does nothing")
		}
	}
	return nil
}

func unfit(reason string) error {
	return &fault.Unsupported{Feature: "start the pacer", Reason: reason, Remedy: "install weir and weird of one build again"}
}

func exit(s unix.WaitStatus) string {
	if s.Signaled() {
		return "signal: " + s.Signal().String()
	}
	return fmt.Sprintf("exit status %d", s.ExitStatus())
}
