package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/ptytest"
	"github.com/weir-io/weir/internal/trace"
)

// A terminal is one that Run shows something on.
type terminal struct {
	t             *testing.T
	master, slave *os.File
	before        unix.Termios

	mu   sync.Mutex
	seen bytes.Buffer
}

func open(t *testing.T) *terminal {
	t.Helper()
	t.Setenv("TERM", "xterm")
	term := &terminal{t: t}
	term.master, term.slave = ptytest.Open(t)
	if err := unix.IoctlSetWinsize(int(term.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	term.before = term.settings()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(term, term.master) // it ends with the slave
	}()
	t.Cleanup(func() {
		term.slave.Close()
		<-read
	})
	return term
}

func (term *terminal) Write(b []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.Write(b)
}

func (term *terminal) settings() unix.Termios {
	term.t.Helper()
	s, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
	if err != nil {
		term.t.Fatal(err)
	}
	return *s
}

func (term *terminal) shows(text string) bool {
	term.mu.Lock()
	defer term.mu.Unlock()
	return strings.Contains(term.seen.String(), text)
}

func (term *terminal) await(text string) {
	term.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !term.shows(text); {
		if time.Now().After(deadline) {
			term.t.Fatalf("%q is not shown in %q", text, term.seen.String())
		}
		time.Sleep(time.Millisecond)
	}
}

// run shows frames of an hour's trace until something ends it.
func (term *terminal) run(ctx context.Context, sample func() (trace.Frame, error)) chan error {
	ended := make(chan error, 1)
	o := Options{Title: "tracing a test", Window: time.Hour, In: term.slave, Out: term.slave}
	go func() { ended <- Run(ctx, o, sample) }()
	return ended
}

func (term *terminal) end(ended chan error, want error) {
	term.t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			term.t.Errorf("it ended with %v, want %v", err, want)
		}
	case <-time.After(20 * time.Second):
		term.t.Fatal("it does not end")
	}
	if term.settings() != term.before {
		term.t.Error("the terminal is not as it was")
	}
	term.await("\x1b[?1049l") // the screen that was there before
}

func frames() (trace.Frame, error) {
	return trace.Frame{Whole: writes(4000, 4*time.Second), Last: writes(500, 1*time.Second)}, nil
}

func TestKeysEndTheView(t *testing.T) {
	for _, key := range []string{"q", "\x03"} {
		term := open(t)
		ended := term.run(t.Context(), frames)
		term.await("memcg reclaim")
		if term.settings() == term.before {
			t.Error("keys would be shown")
		}
		if _, err := term.master.WriteString(key); err != nil {
			t.Fatal(err)
		}
		term.end(ended, nil)
	}
}

func TestTheContextEndsTheView(t *testing.T) {
	term := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := term.run(ctx, frames)
	term.await("memcg reclaim")
	cancel()
	term.end(ended, nil)
}

func TestAnErrorEndsTheView(t *testing.T) {
	broken := errors.New("the map is gone")
	n := 0
	term := open(t)
	ended := term.run(t.Context(), func() (trace.Frame, error) {
		if n++; n > 1 {
			return trace.Frame{}, broken
		}
		return frames()
	})
	term.end(ended, broken)
}

func TestCanShow(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	term := open(t)
	// The test is not in the foreground of this terminal either: it would be stopped.
	for _, c := range [][2]*os.File{{read, write}, {term.slave, write}, {read, term.slave}, {term.slave, term.slave}} {
		if CanShow(c[0], c[1]) {
			t.Errorf("keys from %s, shown on %s", c[0].Name(), c[1].Name())
		}
	}
}
