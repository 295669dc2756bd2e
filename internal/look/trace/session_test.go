package trace

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
)

// A process is traced as a process, and any other target by its group.
func TestRequest(t *testing.T) {
	r := Request{Kinds: []Kind{Fsync}, Slower: time.Second, Files: true}
	if o := r.options(); o.Group != nil || o.PID != 0 || len(o.Kinds) != 1 || o.Slower != time.Second || !o.Files {
		t.Errorf("the whole host: %+v", o)
	}
	r.Target = &targets.Target{Kind: "pid", PID: 7}
	if o := r.options(); o.Group != nil || o.PID != 7 {
		t.Errorf("a process: %+v", o)
	}
	r.Target = &targets.Target{Kind: "cgroup"}
	if o := r.options(); o.Group != &r.Target.Group || o.PID != 0 {
		t.Errorf("a group: %+v", o)
	}
}

// Neither the helper nor the weir that asks it is traced.
func TestTheAskerIsLeftOut(t *testing.T) {
	for _, o := range []Options{{}, {PID: 7}, {Filter: &Filter{ID: 1}}} {
		if got, err := o.asked(); err != nil || got.Asker != os.Getpid() || got.PID != o.PID || got.Filter != o.Filter {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// The limits that bind a target are evidence: those of groups above too, and none without a
// number.
func TestAddLimits(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	night, err := h.Target(context.Background(), "cgroup:/batch/night")
	if err != nil {
		t.Fatal(err)
	}
	var e Evidence
	if err := e.addLimits(context.Background(), h, &night); err != nil {
		t.Fatal(err)
	}
	seen := map[blkdev.Number]limit.Limit{}
	for _, l := range e.Limits {
		seen[l.Device] = l.Limit
		if l.Device == (blkdev.Number{Major: 254}) && l.String() != "write 10 MB/s, write 500 ops/s on /dev/vda" {
			t.Errorf("%s", l)
		}
	}
	if len(seen) != 2 || seen[blkdev.Number{Major: 254, Minor: 16}] != (limit.Limit{}).With(limit.RBPS, limit.PerSecond(1000)) || e.Paced {
		t.Errorf("%+v", e)
	}
	alone, err := h.Target(context.Background(), "cgroup:/alone")
	if err != nil {
		t.Fatal(err)
	}
	e = Evidence{}
	if err := e.addLimits(context.Background(), h, &alone); err != nil || len(e.Limits) > 0 {
		t.Errorf("a group without a limit: %+v, %v", e, err)
	}
	if err := os.RemoveAll(h.Root + "/sys/fs/cgroup/batch"); err != nil {
		t.Fatal(err)
	}
	e = Evidence{}
	if err := e.addLimits(context.Background(), h, &night); err != nil {
		t.Errorf("a group that has gone: %v", err)
	}
}

// Wait ends with the window and with the context, and Run with what it waits for.
func TestWait(t *testing.T) {
	s := &Session{tracer: &Tracer{Began: time.Now().Add(-time.Hour)}}
	if err := s.Wait(context.Background(), time.Minute); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.tracer.Began = time.Now()
	waited := false
	err := s.Run(ctx, func(ctx context.Context) error {
		waited = true
		return s.Wait(ctx, time.Hour)
	})
	if err != nil || !waited {
		t.Errorf("%v, waited: %v", err, waited)
	}
}
