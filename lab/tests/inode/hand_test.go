package inode_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
)

// handVariable makes the test binary a hand.
const handVariable = "WEIR_INODE_HAND"

func TestMain(m *testing.M) {
	if os.Getenv(handVariable) == "" {
		os.Exit(m.Run())
	}
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// An order is what a hand is to do; an answer, what came of it.
type order struct {
	What string
	Args []string
}

type answer struct {
	Value   json.RawMessage
	Err     string
	Refused bool // Err is an inode.Refused
}

// serve does orders, a line each, until there are no more.
func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		value, err := do(ctx, o)
		cancel()
		var a answer
		if err != nil {
			var refused *inode.Refused
			a.Err, a.Refused = err.Error(), errors.As(err, &refused)
		} else if a.Value, err = json.Marshal(value); err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

// A hand is another process, which does things in the group that it is put into. It is
// kept, since to start one takes long where the processor is emulated.
type hand struct {
	mu  sync.Mutex
	pid int
	to  io.Writer
	out *json.Decoder
}

func newHand(t *testing.T, cloneFlags uintptr) *hand {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), handVariable+"=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: cloneFlags}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Errorf("hand: %v", err)
		}
	})
	return &hand{pid: cmd.Process.Pid, to: in, out: json.NewDecoder(out)}
}

// in does something in a group, and decodes what came of it.
func (h *hand) in(t *testing.T, g cgroupfs.Group, value any, what string, args ...string) {
	t.Helper()
	if err := h.tryIn(g, value, what, args...); err != nil {
		t.Fatalf("%s %s in %s: %v", what, strings.Join(args, " "), g.Path(), err)
	}
}

func (h *hand) tryIn(g cgroupfs.Group, value any, what string, args ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := g.AddProcess(h.pid); err != nil {
		return err
	}
	// It must not stay: a test removes its groups.
	defer func() { _ = g.Hierarchy().Root().AddProcess(h.pid) }()
	if err := json.NewEncoder(h.to).Encode(order{what, args}); err != nil {
		return err
	}
	var a answer
	if err := h.out.Decode(&a); err != nil {
		return err
	}
	if a.Err != "" {
		return &handError{a.Refused, a.Err}
	}
	if value == nil {
		return nil
	}
	return json.Unmarshal(a.Value, value)
}

// A handError is an error of the other process.
type handError struct {
	refused bool
	text    string
}

func (e *handError) Error() string { return e.text }
