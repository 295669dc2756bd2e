package tui

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/ptytest"
	"github.com/weir-io/weir/internal/look/trace"
)

// A terminal is one that Run shows something on.
type terminal struct{ *ptytest.Terminal }

func open(t *testing.T) terminal {
	t.Helper()
	return terminal{ptytest.New(t, 80)}
}

// run shows frames of an hour's trace until something ends it.
func (term terminal) run(ctx context.Context, sample func() (trace.Frame, error)) chan error {
	ended := make(chan error, 1)
	o := Options{Title: "tracing a test", Window: time.Hour, In: term.Slave, Out: term.Slave}
	go func() { ended <- Run(ctx, o, sample) }()
	return ended
}

func frames() (trace.Frame, error) {
	return trace.Frame{Whole: writes(4000, 4*time.Second), Last: writes(500, 1*time.Second)}, nil
}

func TestKeysEndTheView(t *testing.T) {
	for _, key := range []string{"q", "\x03"} {
		term := open(t)
		ended := term.run(t.Context(), frames)
		term.Await("memcg reclaim")
		if term.Settings() == term.Before {
			t.Error("keys would be shown")
		}
		if _, err := term.Master.WriteString(key); err != nil {
			t.Fatal(err)
		}
		term.End(ended, nil)
	}
}

// A terminal that claims to be as large as numbers go is not painted: that would take hundreds of gigabytes.
func TestHugeTerminals(t *testing.T) {
	for _, c := range []struct {
		rows, columns uint16
		fit           bool
	}{{24, 80, true}, {0, 0, true}, {300, 1000, true}, {1, 65535, true}, {65535, 65535, false}, {4000, 4000, false}} {
		term := open(t)
		if err := unix.IoctlSetWinsize(int(term.Slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: c.rows, Col: c.columns}); err != nil {
			t.Fatal(err)
		}
		if fits(term.Slave) != c.fit {
			t.Errorf("%d lines of %d columns: %t", c.rows, c.columns, !c.fit)
		}
	}
}

func TestTheContextEndsTheView(t *testing.T) {
	term := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := term.run(ctx, frames)
	term.Await("memcg reclaim")
	cancel()
	term.End(ended, nil)
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
	term.End(ended, broken)
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
	for _, c := range [][2]*os.File{{read, write}, {term.Slave, write}, {read, term.Slave}, {term.Slave, term.Slave}} {
		if CanShow(c[0], c[1]) {
			t.Errorf("keys from %s, shown on %s", c[0].Name(), c[1].Name())
		}
	}
}
