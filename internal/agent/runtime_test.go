package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/lab"
)

// A standIn is a runtime that asks nothing.
type standIn struct {
	RuntimeOptions
	runs chan bool
	lost atomic.Bool
}

func (s *standIn) Run(ctx context.Context) { s.runs <- true; <-ctx.Done(); s.runs <- false }

func (s *standIn) Asks() bool { return !s.lost.Load() }

func (s *standIn) Status() RuntimeStatus {
	if s.lost.Load() {
		return RuntimeStatus{Error: "it has gone"}
	}
	return RuntimeStatus{Runtime: "a runtime"}
}

// A runtime runs as long as the agent, has the plans that are in force, and has pods' annotations
// count, also after the plans have changed.
func TestRuntime(t *testing.T) {
	lab.Unit(t)
	plans := filepath.Join(t.TempDir(), "a.yaml")
	write := func(text string) {
		if err := os.WriteFile(plans, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("plans: {}")
	copied := hosttest.Open(t, "v2", nil, host.Options{})
	var served *standIn
	a, err := New(Options{Root: copied.Root, Plans: plans, Read: planfile.Read, Log: slog.New(slog.DiscardHandler),
		Open: func() (*host.Host, error) {
			h, err := host.Open(host.Options{Root: copied.Root})
			if err == nil {
				hosttest.Rehearse(t, h)
			}
			return h, err
		},
		Runtime: func(o RuntimeOptions) Runtime {
			served = &standIn{RuntimeOptions: o, runs: make(chan bool, 2)}
			return served
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(); err == nil || !strings.Contains(err.Error(), "not all targets were looked at yet") {
		t.Errorf("before it runs it is ready: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, func() {}) }()
	if !<-served.runs {
		t.Error("it does not run")
	}
	if s := a.Status(); s.Runtime == nil || s.Runtime.Runtime != "a runtime" {
		t.Errorf("%+v", s)
	}
	if c := served.Plans(); !c.Annotated || !c.Needs("pod") || !c.Needs("containerd") || c.Needs("docker") {
		t.Errorf("%+v", c)
	}
	write("plans: {small: {write: 1MB/s}}\nallow-labels: [small]")
	for deadline := time.Now().Add(patience); len(served.Plans().AllowLabels) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has the former plans")
		}
	}
	if !served.Plans().Annotated {
		t.Error("annotations do not count any more")
	}
	for deadline := time.Now().Add(patience); a.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(a.Ready())
		}
	}
	served.lost.Store(true)
	if err := a.Ready(); err == nil || !strings.Contains(err.Error(), "it has gone") || a.Live() != nil {
		t.Errorf("without a runtime it is ready: %v, and alive: %v", err, a.Live())
	}
	served.Changed("pod") // nobody waits for that
	served.Ended("pod", "a/b")
	stop()
	if err := <-ended; err != nil || <-served.runs {
		t.Error(err)
	}
}

// An agent that serves a runtime is ready once that asks it, or has not asked for long: kubelet is to start
// pods after that.
func TestReadyWithTheRuntime(t *testing.T) {
	lab.Unit(t)
	plans := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(plans, []byte("plans: {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		most time.Duration
		asks bool // in the end
	}{{"it asks", time.Hour, true}, {"it does not", 200 * time.Millisecond, false}} {
		t.Run(c.name, func(t *testing.T) {
			copied := hosttest.Open(t, "v2", nil, host.Options{})
			served := &standIn{runs: make(chan bool, 2)}
			served.lost.Store(true)
			a, err := New(Options{Root: copied.Root, Plans: plans, Read: planfile.Read, Log: slog.New(slog.DiscardHandler),
				Open: func() (*host.Host, error) {
					h, err := host.Open(host.Options{Root: copied.Root})
					if err == nil {
						hosttest.Rehearse(t, h)
					}
					return h, err
				},
				Runtime: func(RuntimeOptions) Runtime { return served }})
			if err != nil {
				t.Fatal(err)
			}
			a.runtimeMost = c.most
			ctx, stop := context.WithCancel(t.Context())
			began, ready, ended := time.Now(), make(chan time.Time, 1), make(chan error, 1)
			go func() { ended <- a.Run(ctx, func() { ready <- time.Now() }) }()
			if c.asks {
				<-a.loop.Looked()
				select {
				case <-ready:
					t.Error("it is ready before the runtime asks")
				case <-time.After(10 * runtimeEvery):
				}
				served.lost.Store(false)
			}
			select {
			case at := <-ready:
				if !c.asks && at.Sub(began) < c.most {
					t.Errorf("it is ready after %v", at.Sub(began))
				}
			case <-time.After(patience):
				t.Error("it is not ready")
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
