package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

// Options say what is shown, and where.
type Options struct {
	Title   string        // what is traced
	Window  time.Duration // how long
	In, Out *os.File      // the terminal
}

// CanShow reports whether the view can be had: keys come from a terminal that this process
// is in the foreground of, and the screen can be painted.
func CanShow(in, out *os.File) bool {
	if term := os.Getenv("TERM"); term == "" || term == "dumb" {
		return false
	}
	if _, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS); err != nil {
		return false
	}
	group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// framesEvery is how often there is something new to see.
const framesEvery = time.Second

// Run shows what sample finds each second, until the window is over, q or ctrl-c is
// pressed, or the context ends, which is no error. The terminal is then as it was.
func Run(ctx context.Context, o Options, sample func() (Frame, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := tea.NewProgram(model{title: o.Title, window: o.Window}, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	fed := make(chan error, 1)
	go func() { fed <- feed(ctx, cancel, o.Window, sample, func(f Frame) { p.Send(f) }) }()
	_, err := p.Run()
	cancel()
	sampled := <-fed
	if errors.Is(err, tea.ErrProgramKilled) && errors.Is(err, context.Canceled) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("show the trace: %w", err)
	}
	return errors.Join(sampled, err)
}

// feed sends a frame each second, and one when the window is over. Where none can be had
// it stops the view.
func feed(ctx context.Context, stop func(), window time.Duration, sample func() (Frame, error), send func(Frame)) error {
	for next := min(framesEvery, window); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
		f, err := sample()
		if err != nil {
			stop()
			return err
		}
		send(f)
		if f.Passed >= window {
			return nil
		}
		next = min(framesEvery, window-f.Passed)
	}
}
