package weir_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weir-io/weir"
)

// A plan is what an app may read and write, in bytes and operations per second.
type plan struct{ read, write, operations uint64 }

// limitApp puts the container of an app under its plan, and returns what the plan does not hold.
func limitApp(ctx context.Context, h *weir.Host, target string, p plan) (notHeld []string, err error) {
	change, err := h.Set(ctx, target, weir.SetRequest{Limits: []weir.Limit{{
		Rates: weir.Rates{RBPS: p.read, WBPS: p.write, RIOPS: p.operations, WIOPS: p.operations},
	}}})
	if errors.Is(err, weir.ErrNotFound) {
		return nil, nil // it has stopped
	}
	if err != nil {
		return nil, err
	}
	for _, d := range change.Devices {
		for _, e := range d.Expected {
			if e.Mechanism == "" {
				notHeld = append(notHeld, fmt.Sprintf("%s on %s: %s", e, d.Node, e.Why))
			}
		}
	}
	return notHeld, nil
}

// A program with plans of disk I/O for its apps. Its main function begins with RunHelper.
func Example() {
	helpers := weir.RunHelper(os.Args)
	root, remove := copyOf("v1")
	defer remove()
	h, err := weir.Open(weir.Options{Helpers: helpers, Root: root})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	standIn(h)
	ctx := context.Background()
	notHeld, err := limitApp(ctx, h, "cgroup:/alone", plan{read: 50e6, write: 10e6, operations: 1000})
	fmt.Println(notHeld, err)
	app, err := h.Show(ctx, "cgroup:/alone", 0)
	for _, d := range app.Devices {
		fmt.Println(d.Node, d.Limit.WBPS, err)
	}
	// Output:
	// [buffered writes on /dev/vda: cgroup v1 charges writeback to the root group] <nil>
	// /dev/vda 10000000 <nil>
}

// A dry run lists what would be written, and changes nothing. A container is "docker:NAME".
func ExampleHost_Set_dryRun() {
	h, done := open("v2")
	defer done()
	change, err := h.Set(context.Background(), "cgroup:/batch", weir.SetRequest{
		Limits: []weir.Limit{{On: "/data", Rates: weir.Rates{WBPS: 5e6, RBPS: weir.Unlimited}}},
		DryRun: true,
	})
	for _, s := range change.Steps {
		fmt.Println(s.Line)
	}
	fmt.Println(err)
	// Output:
	// 254:16 rbps=max wbps=5000000
	// <nil>
}

func ExampleHost_Clear() {
	h, done := open("v2")
	defer done()
	standIn(h)
	change, err := h.Clear(context.Background(), "cgroup:/batch", weir.ClearRequest{On: []string{"/data"}})
	for _, d := range change.Devices {
		fmt.Println(d.Node, d.Limit.RBPS == weir.Unlimited)
	}
	fmt.Println(err)
	// Output:
	// /dev/vdb true
	// <nil>
}

func ExampleHost_ShowAll() {
	h, done := open("v2")
	defer done()
	groups, err := h.ShowAll(context.Background(), 0)
	for _, g := range groups {
		fmt.Println(g.Target, g.Processes, len(g.Devices))
	}
	fmt.Println(err)
	// Output:
	// cgroup:/batch 2 2
	// cgroup:/batch/night 1 1
	// <nil>
}

// Why says what a limit would hold, before anybody sets it.
func ExampleHost_Why() {
	h, done := open("v1")
	defer done()
	report, err := h.Why(context.Background(), "/data", weir.WhyRequest{
		Limits: []weir.Limit{{Rates: weir.Rates{WBPS: 10e6}}},
		Hold:   weir.HoldKernel,
	})
	held, _ := report.Held()
	fmt.Println(held, err)
	for _, f := range report.Findings {
		if f.Severity == "breaks" {
			fmt.Println(f.Code)
		}
	}
	// Output:
	// false <nil>
	// v1-writeback
}

// Observe measures what the target itself does, and makes no load.
func ExampleHost_Prove() {
	h, done := open("v2", still)
	defer done()
	proof, err := h.Prove(context.Background(), "cgroup:/batch", weir.ProveRequest{Observe: time.Second})
	fmt.Println(proof.Verdict, err)
	// Output:
	// cannot tell <nil>
}

// Errors are told apart by their class, and say what can be done.
func ExampleError() {
	h, done := open("v2")
	defer done()
	_, err := h.Set(context.Background(), "pid:4711", weir.SetRequest{Limits: []weir.Limit{{Rates: weir.Rates{WBPS: 10e6}}}, DryRun: true})
	var refused *weir.Error
	fmt.Println(errors.As(err, &refused), refused.Remedy.Do)
	_, err = h.Show(context.Background(), "cgroup:/none", 0)
	fmt.Println(errors.Is(err, weir.ErrNotFound))
	// Output:
	// true limit-all
	// true
}
