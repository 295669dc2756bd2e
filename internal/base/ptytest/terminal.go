package ptytest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Most is far longer than anything that is shown on a Terminal takes.
const Most = 20 * time.Second

// A Terminal keeps what a program shows on it.
type Terminal struct {
	Master, Slave *os.File
	Before        unix.Termios // its settings at first

	t    testing.TB
	mu   sync.Mutex
	seen bytes.Buffer
}

// New opens an xterm of 24 rows and some columns, until the end of the test.
func New(t *testing.T, columns uint16) *Terminal {
	t.Helper()
	t.Setenv("TERM", "xterm")
	term := &Terminal{t: t}
	term.Master, term.Slave = Open(t)
	if err := unix.IoctlSetWinsize(int(term.Slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	term.Before = term.Settings()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(term, term.Master) // it ends with the slave
	}()
	t.Cleanup(func() {
		_ = term.Slave.Close() // nothing waits to be written
		<-read
	})
	return term
}

// Write takes what is shown.
func (term *Terminal) Write(b []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.Write(b)
}

// Settings are its settings now.
func (term *Terminal) Settings() unix.Termios {
	term.t.Helper()
	s, err := unix.IoctlGetTermios(int(term.Slave.Fd()), unix.TCGETS)
	if err != nil {
		term.t.Fatal(err)
	}
	return *s
}

// Seen is all that was shown.
func (term *Terminal) Seen() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.String()
}

// Await waits until a text is shown.
func (term *Terminal) Await(text string) {
	term.t.Helper()
	for deadline := time.Now().Add(Most); ; time.Sleep(time.Millisecond) {
		seen := term.Seen()
		if strings.Contains(seen, text) {
			return
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("%q is not shown in %q", text, seen)
		}
	}
}

// Press types keys.
func (term *Terminal) Press(keys string) {
	term.t.Helper()
	if _, err := term.Master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// End waits until what is shown has ended, with an error, and has left the terminal as it was.
func (term *Terminal) End(ended chan error, want error) {
	term.t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			term.t.Errorf("it ended with %v, want %v", err, want)
		}
	case <-time.After(Most):
		term.t.Fatal("it does not end")
	}
	if term.Settings() != term.Before {
		term.t.Error("the terminal is not as it was")
	}
	term.Await("\x1b[?1049l") // the screen that was there before
}
