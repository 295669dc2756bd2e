package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/trace"
)

// Options say what to show, and where.
type Options struct {
	Title   string        // what is traced
	Window  time.Duration // how long
	In, Out *os.File      // the terminal
}

// CellsMost is how many characters a terminal has at most that is painted: what paints one keeps a hundred bytes of
// each, and a serial line can claim to have 65535 lines of 65535 columns. Real ones have a third of that.
const CellsMost = 1 << 20

// CanShow reports whether the view is possible: this process must be in the foreground of a
// terminal that sends keys and can be painted.
func CanShow(in, out *os.File) bool {
	if term := os.Getenv("TERM"); term == "" || term == "dumb" {
		return false
	}
	if _, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS); err != nil {
		return false
	}
	if !fits(out) {
		return false
	}
	group, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// fits reports whether a terminal is not larger than any.
func fits(out *os.File) bool {
	size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	return err != nil || int(size.Col)*int(size.Row) <= CellsMost
}

const (
	// framesEvery is how often there is something new to see.
	framesEvery = time.Second
	// lookEvery is how often the terminal's size and the end of the context are looked at.
	lookEvery = 50 * time.Millisecond
)

// Run shows what sample finds each second, until the window is over, q or ctrl-c is
// pressed, or the context ends, which is no error. The terminal is then as it was.
func Run(ctx context.Context, o Options, sample func() (trace.Frame, error)) (err error) {
	s, err := openScreen(o.In, o.Out)
	if err != nil {
		return fmt.Errorf("show the trace: %w", err)
	}
	defer func() {
		if left := s.leave(); left != nil {
			err = errors.Join(err, fmt.Errorf("show the trace: %w", left))
		}
	}()
	m := model{title: o.Title, window: o.Window}
	for next := time.Now().Add(min(framesEvery, o.Window)); ctx.Err() == nil; {
		m.width, m.height = s.size()
		if err := s.paint(m.text()); err != nil {
			return fmt.Errorf("show the trace: %w", err)
		}
		keys, err := s.keys(min(time.Until(next), lookEvery))
		if err != nil {
			return fmt.Errorf("show the trace: %w", err)
		}
		switch pressed(keys) {
		case pressQuit:
			return nil
		case pressSuspend:
			if err := s.suspend(); err != nil {
				return fmt.Errorf("show the trace: %w", err)
			}
		}
		if time.Now().Before(next) {
			continue
		}
		if m.frame, err = sample(); err != nil || m.over() {
			return err
		}
		next = time.Now().Add(min(framesEvery, m.window-m.frame.Passed))
	}
	return nil
}
