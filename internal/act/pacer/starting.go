package pacer

import (
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/fault"
)

// PacerArg is the argument that runs weir as the pacer: see Serve.
const PacerArg = "__pacer"

// A starting is a pacer that this process has started, and that may not answer yet. It is weird, a
// file that may be anything. So who waits for it looks after it.
type starting struct {
	process *os.Process
	at      time.Time
	looked  time.Time
	pulse   *background.Pulse
	ended   chan *os.ProcessState // has one once it has ended
	over    bool                  // that was seen
}

// begin starts a pacer in the background. It ends at once if another one is running.
func begin() (*starting, error) {
	s, err := started(background.Command(PacerArg))
	if err != nil {
		return nil, fmt.Errorf("start the pacer: %w", err)
	}
	return s, nil
}

// started starts a command. It is waited for as long as it runs: weird outlives many pacers, and would
// have a zombie of each.
func started(cmd *exec.Cmd) (*starting, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	now := time.Now()
	s := &starting{process: cmd.Process, at: now, looked: now, pulse: background.PulseOf(cmd.Process.Pid), ended: make(chan *os.ProcessState, 1)}
	go func() {
		state, _ := s.process.Wait()
		s.ended <- state
	}()
	return s, nil
}

// Start starts a pacer in the background. It ends at once if another one is running.
func Start() error {
	_, err := begin()
	return err
}

// failed is why it will not answer; nil: it may. A pacer that gives up waits for the lock of another
// one before that, and wakes all the time.
func (s *starting) failed() error {
	if s == nil || s.over {
		return nil
	}
	select {
	case state := <-s.ended:
		s.over = true
		if time.Since(s.at) < takeOverMax {
			return unfit("it ended at once (" + state.String() + ")")
		}
		return nil
	default:
	}
	if now := time.Now(); now.Sub(s.looked) >= background.PulseEvery {
		s.looked = now
		if s.pulse.Hangs() {
			if s.process.Kill() == nil {
				_ = unix.Kill(-s.process.Pid, unix.SIGKILL) // it has a session of its own
			}
			<-s.ended
			s.over = true
			return unfit("it does nothing")
		}
	}
	return nil
}

func unfit(reason string) error {
	return &fault.Unsupported{Feature: "start the pacer", Reason: reason, Remedy: "install weir and weird of one build again"}
}
