package launch

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// passed are the signals that weir passes on to the command.
var passed = [...]syscall.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT}

// A SignalError says that a signal arrived that would have ended weir, before the command was
// started.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return e.Signal.String() + ": the command was not started" }

// ExitStatus is the one that a shell gives for a program that the signal ended.
func (e *SignalError) ExitStatus() int { return 128 + int(e.Signal) }

// BesidesSignal is what is left of an error, which may be a joined one, without a SignalError and
// without errors of the context that ended for it: nil if there is nothing else.
func BesidesSignal(err error) error {
	var signaled *SignalError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, each := range joined.Unwrap() {
			rest = append(rest, BesidesSignal(each))
		}
		return errors.Join(rest...)
	}
	if errors.As(err, &signaled) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Signals are the signals that weir gets between Catch and Stop, when it must not simply end
// because it has a group to remove.
type Signals struct {
	caught chan os.Signal
	cancel context.CancelCauseFunc
	once   sync.Once
	taken  chan struct{} // closed to end the watch
	ended  chan struct{} // closed when it has ended
}

// Catch catches the signals that weir passes on to a command. Until Run takes them, the first
// that would have ended weir ends the context; its cause is a *SignalError.
//
// Signals that weir was told to ignore, by nohup or by a shell's &, stay ignored, for the
// command too: a caught signal would be reset for it. (Go keeps that only for HUP and INT.)
func Catch(ctx context.Context) (context.Context, *Signals) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &Signals{caught: make(chan os.Signal, 16), cancel: cancel, taken: make(chan struct{}), ended: make(chan struct{})}
	for _, each := range passed {
		if !signal.Ignored(each) {
			signal.Notify(s.caught, each)
		}
	}
	// If the reader of weir's messages is gone, that must not end weir before it has cleaned
	// up. The signal must not be ignored either, because the command would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	go s.watch()
	return ctx, s
}

func (s *Signals) watch() {
	defer close(s.ended)
	for {
		select {
		case <-s.taken:
			return
		case caught := <-s.caught:
			if s.end(caught) {
				return
			}
		}
	}
}

// end ends the context if the signal would have ended weir.
func (s *Signals) end(caught os.Signal) bool {
	if caught == unix.SIGWINCH || caught == unix.SIGCONT {
		return false
	}
	s.cancel(&SignalError{caught.(syscall.Signal)})
	return true
}

// drain handles signals that arrived before the watch ended and that it left.
func (s *Signals) drain() {
	for {
		select {
		case caught := <-s.caught:
			s.end(caught)
		default:
			return
		}
	}
}

// take ends the watch: from now on signals go to the command.
func (s *Signals) take() <-chan os.Signal {
	s.once.Do(func() { close(s.taken) })
	<-s.ended
	return s.caught
}

// Stop restores the signals' effect on weir.
func (s *Signals) Stop() {
	signal.Stop(s.caught)
	s.take()
	s.cancel(nil)
}

// forward waits for the end of the command and passes signals on, except those that went to the
// whole process group, if the command is in it. It always passes TERM on: twice is better than
// never. When the context ends, it tells the command to end.
func forward(ctx context.Context, p *os.Process, signals <-chan os.Signal, group *witness, ended <-chan error) error {
	done := ctx.Done()
	// The witness can be late (it may be stopped): the command's end does not wait for it.
	asked := make(chan os.Signal, 64)
	defer close(asked)
	go func() {
		for s := range asked {
			if !group.saw(s.(syscall.Signal)) {
				_ = p.Signal(s) // it may have ended meanwhile
			}
		}
	}()
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if s == unix.SIGTERM || apart(p.Pid) {
				_ = p.Signal(s) // it may have ended meanwhile
			} else {
				asked <- s
			}
		case <-done:
			_ = p.Signal(unix.SIGTERM)
			done = nil
		}
	}
}

// apart reports whether a process is in another process group than weir.
func apart(pid int) bool {
	group, err := unix.Getpgid(pid)
	return err != nil || group != unix.Getpgrp()
}

// onTerminal reports whether weir has a controlling terminal, which signals its whole
// process group.
func onTerminal() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(tty) // nothing was written
	return true
}
