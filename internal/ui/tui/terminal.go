package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What terminals are told (xterm's control sequences, which all terminals of today know).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l" // what was there before
	toTop       = "\x1b[H"
	clearLine   = "\x1b[2K"
	clearRest   = "\x1b[J"
)

// A screen is a terminal that keys are read from one by one, and that is painted whole.
type screen struct {
	in, out *os.File
	before  unix.Termios
	shown   string
}

func openScreen(in, out *os.File) (*screen, error) {
	before, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("read the terminal's settings: %w", err)
	}
	s := &screen{in: in, out: out, before: *before}
	return s, s.enter()
}

// enter has keys come at once, unseen, and none as a signal.
func (s *screen) enter() error {
	set := s.before
	set.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	set.Iflag &^= unix.ICRNL | unix.IXON
	set.Cc[unix.VMIN], set.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, &set); err != nil {
		return fmt.Errorf("set the terminal: %w", err)
	}
	s.shown = ""
	_, err := s.out.WriteString(enterScreen)
	return err
}

// leave gives the terminal back as it was.
func (s *screen) leave() error {
	_, err := s.out.WriteString(leaveScreen)
	return errors.Join(err, unix.IoctlSetTermios(int(s.in.Fd()), unix.TCSETS, &s.before))
}

// size is the terminal's size in characters; 0 if it is not known.
func (s *screen) size() (width, height int) {
	ws, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(ws.Col), int(ws.Row)
}

// paint shows lines that fit, unless they are shown already.
func (s *screen) paint(text string) error {
	if text == s.shown {
		return nil
	}
	s.shown = text
	_, err := s.out.WriteString(toTop + clearLine + strings.ReplaceAll(text, "\n", "\r\n"+clearLine) + clearRest)
	return err
}

// keys waits for keys, for a limited time. After escape it waits for what follows, to tell the
// escape key from other keys.
func (s *screen) keys(most time.Duration) ([]byte, error) {
	var all []byte
	for {
		ready := []unix.PollFd{{Fd: int32(s.in.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(max(most, 0)/time.Millisecond))
		if errors.Is(err, unix.EINTR) || err == nil && n == 0 {
			return all, nil
		}
		buf := make([]byte, 64)
		if err == nil {
			n, err = unix.Read(int(s.in.Fd()), buf)
		}
		if err == nil && n == 0 {
			err = io.EOF // it has been hung up
		}
		if err != nil {
			return all, fmt.Errorf("read keys: %w", err)
		}
		if all = append(all, buf[:n]...); len(all) != 1 || all[0] != escape {
			return all, nil
		}
	}
}

// suspendMost bounds the wait for a stop that may not come: an orphaned process group is
// not stopped by SIGTSTP.
const suspendMost = time.Second

// suspend stops the process group, as ctrl-z does, and comes back when it goes on.
func (s *screen) suspend() error {
	if err := s.leave(); err != nil {
		return err
	}
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, unix.SIGCONT)
	defer signal.Stop(goesOn)
	if err := unix.Kill(0, unix.SIGTSTP); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	select {
	case <-goesOn:
	case <-time.After(suspendMost):
	}
	return s.enter()
}
