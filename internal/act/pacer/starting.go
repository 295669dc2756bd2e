package pacer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/base/plain"
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
	ended   chan end // has one once it has ended
	over    bool     // that was seen
}

// An end is how a pacer has ended, and the first line of what it said.
type end struct {
	state *os.ProcessState
	said  string
}

// A StartError says that there is no pacer, and that none can be started.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }

func (e *StartError) Unwrap() error { return e.Err }

// begin starts a pacer in the background. It ends at once if another one is running.
func begin() (*starting, error) {
	s, err := started(background.Command(PacerArg))
	if err != nil {
		return nil, &StartError{fmt.Errorf("start the pacer: %w", err)}
	}
	return s, nil
}

// started starts a command. It is waited for as long as it runs: weird outlives many pacers, and would
// have a zombie of each.
func started(cmd *exec.Cmd) (*starting, error) {
	// A pipe would end a pacer that says something after this process has ended.
	saying, err := memoryFile()
	if err == nil { // else nobody learns what it says
		cmd.Stderr = saying
	}
	if err := cmd.Start(); err != nil {
		if saying != nil {
			err = errors.Join(err, saying.Close())
		}
		return nil, err
	}
	now := time.Now()
	s := &starting{process: cmd.Process, at: now, looked: now, pulse: background.PulseOf(cmd.Process.Pid), ended: make(chan end, 1)}
	go func() {
		state, _ := s.process.Wait()
		text, _ := io.ReadAll(io.NewSectionReader(saying, 0, sayingMost))
		_ = saying.Close() // it was read
		line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
		s.ended <- end{state, plain.Brief(string(line))}
	}()
	return s, nil
}

// sayingMost is how much of what a pacer says is read, in bytes.
const sayingMost = 2048

// memoryFile makes a file that has no name, and takes no disk. After an error it is nil, of which
// nothing can be read.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("weir's pacer says", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "memory"), nil
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
	case how := <-s.ended:
		s.over = true
		if time.Since(s.at) < takeOverMax {
			return how.err()
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
			select {
			case <-s.ended:
			case <-time.After(killMost): // the kernel does not let it go
			}
			s.over = true
			return unfit("it does nothing", sameBuild)
		}
	}
	return nil
}

// killMost is how long a killed process may take to end.
const killMost = time.Second

// sameBuild is what to do where weird is no weird, or another one than weir's.
const sameBuild = "install weir and weird of one build again"

// err says why a pacer that has ended at once did. A weird that does not know the pacer ends with wrong usage,
// and another program says nothing that weir can pass on.
func (e end) err() error {
	reason, remedy := "it ended at once ("+e.state.String()+")", sameBuild
	status, is := e.state.Sys().(syscall.WaitStatus)
	switch {
	case is && status.Signaled() && status.Signal() == unix.SIGKILL:
		remedy = "the kernel's log (dmesg) says whether it was killed for lack of memory"
	case e.said != "" && !e.state.Success() && e.state.ExitCode() != fault.ExitWrongUse:
		remedy = "" // what it says is the reason
	}
	if e.said != "" {
		reason += ": " + e.said
	}
	return unfit(reason, remedy)
}

func unfit(reason, remedy string) error {
	return &StartError{&fault.Unsupported{Feature: "start the pacer", Reason: reason, Remedy: remedy}}
}
