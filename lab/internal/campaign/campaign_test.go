package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-io/weir/lab/internal/build"
	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/matrix"
	"github.com/weir-io/weir/lab/internal/outcome"
	"github.com/weir-io/weir/lab/internal/process"
	"github.com/weir-io/weir/lab/internal/slots"
)

// fake is a guest that runs nothing, or breaks.
type fake struct {
	name    string
	err     error
	running *atomic.Int32
	most    *atomic.Int32
}

func (f fake) Name() string { return f.name }

func (f fake) Run(_ context.Context, job guest.Job) (guest.Result, error) {
	if n := f.running.Add(1); n > f.most.Load() {
		f.most.Store(n)
	}
	defer f.running.Add(-1)
	return guest.Result{}, errors.Join(f.err, os.WriteFile(filepath.Join(job.Dir, "console"), nil, 0o644))
}

func TestDo(t *testing.T) {
	var running, most atomic.Int32
	places, err := slots.Open(t.TempDir(), 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	hung := errors.New("did not end")
	c := Campaign{
		Out: out, Parallel: 2, Slots: places, Log: t.Logf,
		Make: map[string]Maker{
			matrix.UML: func(_ context.Context, r matrix.Row) (guest.Guest, error) {
				f := fake{name: r.Name(), running: &running, most: &most}
				if r.Kernel == "hangs" {
					f.err = hung
				}
				return f, nil
			},
			matrix.QEMU: func(context.Context, matrix.Row) (guest.Guest, error) { return nil, hung },
		},
	}
	rows := []matrix.Row{
		{Lane: matrix.UML, Kernel: "1"}, {Lane: matrix.UML, Kernel: "2"}, {Lane: matrix.UML, Kernel: "3"},
		{Lane: matrix.UML, Kernel: "hangs"}, {Lane: matrix.QEMU, Kernel: "cannot be made"},
	}
	guests, err := c.Do(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	if most.Load() > 2 {
		t.Errorf("%d guests at once, want 2 at most", most.Load())
	}
	for i, wantBad := range []bool{false, false, false, true, true} {
		if guests[i].Bad() != wantBad {
			t.Errorf("%s: bad %v, want %v (%v)", guests[i].Name, guests[i].Bad(), wantBad, guests[i].Err)
		}
	}
	left, err := filepath.Glob(filepath.Join(out, "*", "*"))
	want := filepath.Join(out, guests[3].Name, "console")
	if err != nil || len(left) != 1 || left[0] != want {
		t.Errorf("left %q, %v; want only %s", left, err, want)
	}
}

// taker keeps the last job that it was given.
type taker struct{ job *guest.Job }

func (taker) Name() string { return "taker" }

func (k taker) Run(_ context.Context, job guest.Job) (guest.Result, error) {
	*k.job = job
	return guest.Result{}, nil
}

// TestOnly: a row's choice of tests gives way to the user's.
func TestOnly(t *testing.T) {
	places, err := slots.Open(t.TempDir(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for run, want := range map[string][]string{"": {"bpf", "systemd"}, "TestDocker": nil} {
		var job guest.Job
		c := Campaign{
			Out: t.TempDir(), Slots: places, Log: t.Logf, Run: run,
			Make: map[string]Maker{matrix.FullQEMU: func(context.Context, matrix.Row) (guest.Guest, error) { return taker{&job}, nil }},
		}
		if _, err := c.Do(t.Context(), []matrix.Row{{Lane: matrix.FullQEMU, Only: "bpf,systemd"}}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(job.Only, want) {
			t.Errorf("-run %q: only %q, want %q", run, job.Only, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	missed := []outcome.Missed{
		{Known: outcome.Known{Package: "p", Name: "TestA"}, Reasons: []string{"v2 (native)", "lvm"}},
		{Known: outcome.Known{Package: "p", Name: "TestB"}},
	}
	const want = "p TestA: v2 (native); lvm\np TestB: not even tried\n"
	if got := Describe(missed); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// An emulated guest that measures rates has all processors; one that does not has one.
func TestEmulatedRatesRunAlone(t *testing.T) {
	places, err := slots.Open(t.TempDir(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for only, want := range map[string]int{"": process.All, "bpf": 0} {
		var job guest.Job
		c := Campaign{
			Out: t.TempDir(), Slots: places, Log: t.Logf,
			Make: map[string]Maker{matrix.QEMU: func(context.Context, matrix.Row) (guest.Guest, error) { return taker{&job}, nil }},
		}
		if _, err := c.Do(t.Context(), []matrix.Row{{Lane: matrix.QEMU, Only: only}}); err != nil {
			t.Fatal(err)
		}
		if job.CPU != want {
			t.Errorf("only %q: processor %d, want %d", only, job.CPU, want)
		}
	}
}

// What measures nothing runs while guests run, and has ended when those begin that run alone. Where
// guests leave no time it comes first.
func TestBeside(t *testing.T) {
	for _, spare := range []bool{true, false} {
		places, err := slots.Open(t.TempDir(), 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var seen []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, what)
		}
		guestRuns := make(chan struct{})
		c := Campaign{
			Out: t.TempDir(), Parallel: 2, Slots: places, Log: t.Logf,
			Beside: func(_ context.Context, cpu int) {
				if want := map[bool]int{true: process.Spare, false: process.All}[spare]; cpu != want {
					t.Errorf("processor %d, want %d", cpu, want)
				}
				if spare {
					<-guestRuns
				}
				note("beside")
			},
			Make: map[string]Maker{
				matrix.UML:    func(context.Context, matrix.Row) (guest.Guest, error) { return teller{note, guestRuns}, nil },
				matrix.Native: func(context.Context, matrix.Row) (guest.Guest, error) { return teller{note, nil}, nil },
			},
		}
		if spare {
			c.Machine.Threads, c.Machine.Processors = 2, 2
		} else {
			c.Machine.Threads, c.Machine.Processors = 2, 1
		}
		if _, err := c.Do(t.Context(), []matrix.Row{{Lane: matrix.Native}, {Lane: matrix.UML}}); err != nil {
			t.Fatal(err)
		}
		want := []string{"guest", "beside", "alone"}
		if !spare {
			want = []string{"beside", "guest", "alone"}
		}
		if !slices.Equal(seen, want) {
			t.Errorf("with time to spare %t: %q, want %q", spare, seen, want)
		}
	}
}

// teller is a guest that says when it runs: with a channel, that others run beside it.
type teller struct {
	note func(string)
	runs chan struct{}
}

func (teller) Name() string { return "teller" }

func (g teller) Run(context.Context, guest.Job) (guest.Result, error) {
	if g.runs == nil {
		g.note("alone")
		return guest.Result{}, nil
	}
	g.note("guest")
	close(g.runs)
	return guest.Result{}, nil
}

// reds is a guest whose measuring test is red as long as others run beside it.
type reds struct {
	runs  *atomic.Int32
	green bool // the second time
}

func (r reds) Name() string { return "reds" }

func (r reds) Run(_ context.Context, job guest.Job) (guest.Result, error) {
	if n := r.runs.Add(1); n > 1 && job.Run != "^(TestRate)$" {
		return guest.Result{}, errors.New("runs more than what was red")
	}
	log, exit := "=== RUN   TestRate\n    r_test.go:1: "+outcome.MeasuredMark+"\n--- FAIL: TestRate (0.01s)\nFAIL\n", 1
	if r.runs.Load() > 1 && r.green {
		log, exit = "=== RUN   TestRate\n--- PASS: TestRate (0.01s)\nPASS\n", 0
	}
	return guest.Result{Outputs: []guest.Output{{Package: "p", Log: []byte(log), Ended: true, Exit: exit}}}, nil
}

// What is red for what it measured beside others gets a second chance alone, and one only.
func TestMeasuresAgain(t *testing.T) {
	for _, green := range []bool{true, false} {
		places, err := slots.Open(t.TempDir(), 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		convert, err := build.FindConverter(t.Context(), ".")
		if err != nil {
			t.Fatal(err)
		}
		var runs atomic.Int32
		c := Campaign{
			Convert: convert, Out: t.TempDir(), Parallel: 2, Slots: places, Log: t.Logf,
			Make: map[string]Maker{matrix.UML: func(context.Context, matrix.Row) (guest.Guest, error) { return reds{&runs, green}, nil }},
		}
		guests, err := c.Do(t.Context(), []matrix.Row{{Lane: matrix.UML}})
		if err != nil {
			t.Fatal(err)
		}
		if runs.Load() != 2 || guests[0].Bad() == green || guests[0].Count(outcome.Again) > 0 != green {
			t.Errorf("green alone %t: %d runs, %+v", green, runs.Load(), guests[0])
		}
	}
}
