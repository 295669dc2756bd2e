package live

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/ptytest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/ui/top"
)

// A terminal is one that Run shows something on.
type terminal struct{ *ptytest.Terminal }

func open(t *testing.T) terminal {
	t.Helper()
	return terminal{ptytest.New(t, 100)}
}

// next has one snapshot after the other, with time for keys between them.
func next(sample func(context.Context) (*watch.Snapshot, error)) func(context.Context) (top.View, error) {
	return func(ctx context.Context) (top.View, error) {
		time.Sleep(time.Millisecond)
		s, err := sample(ctx)
		return top.View{Snapshot: s}, err
	}
}

// run shows snapshots until something ends it.
func (term terminal) run(ctx context.Context, sample func(context.Context) (*watch.Snapshot, error)) chan error {
	ended := make(chan error, 1)
	o := Options{In: term.Slave, Out: term.Slave, Next: next(sample), Screen: top.Screen{Options: top.Options{All: true}}}
	go func() { ended <- Run(ctx, o) }()
	return ended
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
		term.Await("unit:first")
		if term.Settings() == term.Before {
			t.Error("keys would be shown")
		}
		term.Press(quit)
		term.End(ended, nil)
	}
}

// A size that no terminal has is left out: the last one stays.
func TestHugeTerminals(t *testing.T) {
	ask := tea.WindowSizeMsg{Width: 65535, Height: 65535}
	usual := tea.WindowSizeMsg{Width: 1000, Height: 300}
	if sized(nil, ask) != nil || sized(nil, usual) != tea.Msg(usual) || sized(nil, reading{}) == nil {
		t.Error("sizes are taken that no terminal has, or others are not")
	}
}

func TestTheContextEndsIt(t *testing.T) {
	term := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := term.run(ctx, groups(t))
	term.Await("unit:first")
	cancel()
	term.End(ended, nil)
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
	term.End(ended, broken)
}

// A signal that ends the context ends it each time: nothing else may wait for the same signal.
func TestASignalEndsIt(t *testing.T) {
	for range 20 {
		term := open(t)
		ctx, stop := signal.NotifyContext(t.Context(), unix.SIGTERM)
		ended := term.run(ctx, groups(t))
		term.Await("unit:first")
		if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		term.End(ended, nil)
		stop()
	}
}

// weir why is asked when details are opened, once while they are, and its answer is shown. A question
// that takes long ends with the screen.
func TestAsksWhy(t *testing.T) {
	term := open(t)
	asked := make(chan string, 10)
	left := make(chan struct{})
	sample := func(context.Context) (*watch.Snapshot, error) {
		limited := []watch.Device{{Node: "/dev/sda", Limit: limit.None.With(limit.WBPS, limit.PerSecond(1e6))}}
		return &watch.Snapshot{Version: cgroupfs.V2, Groups: []*watch.Group{{Path: "/a", Target: "unit:first", Devices: limited}, {Path: "/b", Target: "unit:second", Devices: limited}}}, nil
	}
	ended := make(chan error, 1)
	o := Options{In: term.Slave, Out: term.Slave, Next: next(sample), Screen: top.Screen{Options: top.Options{All: true}},
		Why: func(ctx context.Context, target string) ([]why.Finding, error) {
			asked <- target
			if target == "unit:second" {
				defer close(left)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []why.Finding{{Code: "dax", Severity: why.Breaks, Text: "Held by none."}}, nil
		}}
	go func() { ended <- Run(t.Context(), o) }()
	term.Await("unit:first")
	term.Press("\r")
	term.Await("dax (breaks): Held by none.")
	term.Press("j")
	term.Await("asking …")
	term.Press("q")
	term.End(ended, nil)
	select {
	case <-left:
	default:
		t.Error("it is still asked")
	}
	if a, b := <-asked, <-asked; a != "unit:first" || b != "unit:second" || len(asked) > 0 {
		t.Errorf("asked about %s, %s and %d more", a, b, len(asked))
	}
}
