package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/lab"
)

// A weird is a weird run with plans of its own, which asks a test's engine for containers.
type weird struct {
	t       *testing.T
	plans   string // the directory
	socket  string
	journal string   // the directory
	api     string   // the directory of its sockets
	args    []string // more of them
	env     []string
	cmd     *exec.Cmd
	ended   chan error

	mu  sync.Mutex
	log strings.Builder
}

// newWeird makes one that does not run yet.
func newWeird(t *testing.T, e *engine, plans string) *weird {
	t.Helper()
	dir := t.TempDir()
	w := &weird{t: t, plans: filepath.Join(dir, "plans.d"), socket: filepath.Join(dir, "s"), journal: filepath.Join(dir, "journal"), api: filepath.Join(dir, "api"),
		env: append(os.Environ(), "DOCKER_HOST=unix://"+e.socket, "CONTAINER_HOST=unix://"+filepath.Join(dir, "none"))}
	if err := os.Mkdir(w.plans, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(plans)
	t.Cleanup(func() {
		w.stop()
		if t.Failed() {
			t.Logf("weird said:\n%s", w.lately())
		}
	})
	return w
}

// Write takes what weird says.
func (w *weird) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

func (w *weird) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// lately is the end of what it said.
func (w *weird) lately() string {
	text := w.said()
	return text[max(0, len(text)-8<<10):]
}

// write exchanges the plans at once, as an operator is told to.
func (w *weird) write(plans string) {
	w.t.Helper()
	file := filepath.Join(w.plans, "a.yaml")
	if err := os.WriteFile(file+".new", []byte(plans), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		w.t.Fatal(err)
	}
}

// begin starts it, and does not wait.
func (w *weird) begin() {
	w.t.Helper()
	w.cmd = exec.Command("weird", append([]string{"run", "--plans", w.plans, "--socket", w.socket, "--journal", w.journal, "--api", w.api}, w.args...)...)
	w.cmd.Env, w.cmd.Stderr = w.env, w
	w.cmd.WaitDelay = time.Second // the pacer may have its standard error
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	cmd, ended := w.cmd, make(chan error, 1)
	w.ended = ended
	go func() { ended <- cmd.Wait() }()
}

// start starts it, and waits until it has looked at everything once.
func (w *weird) start() {
	w.t.Helper()
	before := strings.Count(w.said(), "msg=ready")
	w.begin()
	lab.Await(w.t, patience, "weird to be ready", func() bool {
		select {
		case err := <-w.ended:
			w.t.Fatalf("weird has ended: %v\n%s", err, w.lately())
		default:
		}
		return strings.Count(w.said(), "msg=ready") > before
	})
}

// stop ends it, as systemd does.
func (w *weird) stop() {
	w.t.Helper()
	if w.cmd == nil {
		return
	}
	_ = w.cmd.Process.Signal(unix.SIGTERM)
	select {
	case err := <-w.ended:
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			w.t.Errorf("weird ends with %v", err)
		}
	case <-time.After(patience):
		w.t.Error("weird does not end")
		w.kill()
	}
	w.cmd = nil
}

// kill kills it. One that has ended by itself has failed.
func (w *weird) kill() {
	w.t.Helper()
	_ = w.cmd.Process.Kill() // it may have ended
	var exit *exec.ExitError
	if err := <-w.ended; !errors.As(err, &exit) || exit.Exited() {
		w.t.Errorf("weird ended before it was killed: %v\n%s", err, w.lately())
	}
	w.cmd = nil
}

func (w *weird) status() api.Agent {
	w.t.Helper()
	var a api.Agent
	if err := health.Ask(context.Background(), w.socket, health.StatusRoute, &a); err != nil {
		w.t.Fatalf("%v\n%s", err, w.lately())
	}
	return a
}

// target is what it knows of one; nil: nothing.
func (w *weird) target(name string) *api.AgentTarget {
	w.t.Helper()
	for _, one := range w.status().Targets {
		if one.Target == name {
			return &one
		}
	}
	return nil
}

// on spells plans whose rates are on one disk: "small" and their rates as YAML.
func on(disk *lab.TestDisk, rates map[string]string, rest string) string {
	var b strings.Builder
	b.WriteString("plans:\n")
	for name, its := range rates {
		fmt.Fprintf(&b, "  %s: {on: [{path: %s, %s}]}\n", name, disk.Node, its)
	}
	return b.String() + rest
}
