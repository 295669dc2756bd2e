package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/ptytest"
	"github.com/weir-io/weir/internal/ui/top"
	"github.com/weir-io/weir/internal/watch"
)

// most is far longer than anything here takes.
const most = 20 * time.Second

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
	if err := unix.IoctlSetWinsize(int(term.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
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

func (term *terminal) await(text string) {
	term.t.Helper()
	for deadline := time.Now().Add(most); ; time.Sleep(time.Millisecond) {
		term.mu.Lock()
		seen := term.seen.String()
		term.mu.Unlock()
		if strings.Contains(seen, text) {
			return
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("%q is not shown in %q", text, seen)
		}
	}
}

func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// run shows snapshots until something ends it.
func (term *terminal) run(ctx context.Context, sample func(context.Context) (*watch.Snapshot, error)) chan error {
	ended := make(chan error, 1)
	o := Options{Every: time.Millisecond, In: term.slave, Out: term.slave, Sample: sample, Screen: top.Screen{Options: top.Options{All: true}}}
	go func() { ended <- Run(ctx, o) }()
	return ended
}

func (term *terminal) end(ended chan error, want error) {
	term.t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			term.t.Errorf("it ended with %v, want %v", err, want)
		}
	case <-time.After(most):
		term.t.Fatal("it does not end")
	}
	if term.settings() != term.before {
		term.t.Error("the terminal is not as it was")
	}
	term.await("\x1b[?1049l") // the screen that was there before
}

// groups has two groups, which one goroutine at a time may read.
func groups(t *testing.T) func(context.Context) (*watch.Snapshot, error) {
	var busy sync.Mutex
	return func(context.Context) (*watch.Snapshot, error) {
		if !busy.TryLock() {
			t.Error("read by two at a time")
		}
		defer busy.Unlock()
		s := &watch.Snapshot{Version: cgroupfs.V2, Groups: []*watch.Group{{Path: "/a", Target: "unit:first"}, {Path: "/b", Target: "unit:second"}}}
		return s, nil
	}
}

func TestKeys(t *testing.T) {
	for _, quit := range []string{"q", "\x03"} {
		term := open(t)
		ended := term.run(t.Context(), groups(t))
		term.await("unit:first")
		if term.settings() == term.before {
			t.Error("keys would be shown")
		}
		term.press(quit)
		term.end(ended, nil)
	}
}

func TestTheContextEndsIt(t *testing.T) {
	term := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := term.run(ctx, groups(t))
	term.await("unit:first")
	cancel()
	term.end(ended, nil)
}

func TestAnErrorEndsIt(t *testing.T) {
	broken := errors.New("the hierarchy is gone")
	read := groups(t)
	n := 0
	term := open(t)
	ended := term.run(t.Context(), func(ctx context.Context) (*watch.Snapshot, error) {
		if n++; n > 3 {
			return nil, broken
		}
		return read(ctx)
	})
	term.end(ended, broken)
}

// A signal that ends the context ends it each time: nothing else may wait for the same signal.
func TestASignalEndsIt(t *testing.T) {
	for range 20 {
		term := open(t)
		ctx, stop := signal.NotifyContext(t.Context(), unix.SIGTERM)
		ended := term.run(ctx, groups(t))
		term.await("unit:first")
		if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		term.end(ended, nil)
		stop()
	}
}
