package weir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
)

// TestSameAsTheCommandLine asks the library and the command line the same, on copies of machines.
func TestSameAsTheCommandLine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	program := filepath.Join(t.TempDir(), "weir")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "./cmd/weir").CombinedOutput(); err != nil {
		t.Fatalf("build weir: %v\n%s", err, out)
	}
	write := func(on string) []weir.Limit { return []weir.Limit{{On: on, Rates: weir.Rates{WBPS: 5e6}}} }
	set := func(target string, r weir.SetRequest) func(*weir.Host) (document, error) {
		r.DryRun = true
		return func(h *weir.Host) (document, error) {
			c, err := h.Set(ctx, target, r)
			return stepsIn(c.Steps), err
		}
	}
	clear := func(target string, on ...string) func(*weir.Host) (document, error) {
		return func(h *weir.Host) (document, error) {
			c, err := h.Clear(ctx, target, weir.ClearRequest{On: on, DryRun: true})
			return stepsIn(c.Steps), err
		}
	}
	explain := func(subject string, r weir.WhyRequest) func(*weir.Host) (document, error) {
		return func(h *weir.Host) (document, error) {
			report, err := h.Why(ctx, subject, r)
			return reportIn(report), err
		}
	}
	show := func(target string) func(*weir.Host) (document, error) {
		return func(h *weir.Host) (document, error) {
			l, err := h.Show(ctx, target, 0)
			return shownIn([]weir.Limited{l}), err
		}
	}
	for _, c := range []struct {
		args  string
		calls func(*weir.Host) (document, error)
	}{
		{"show --for 0", func(h *weir.Host) (document, error) {
			all, err := h.ShowAll(ctx, 0)
			return shownIn(all), err
		}},
		{"show --for 0 cgroup:/batch/night", show("cgroup:/batch/night")},
		{"show --for 0 cgroup:/none", show("cgroup:/none")},
		{"show --for 0 none:x", show("none:x")},
		{"set --dry-run cgroup:/batch --write 5MB/s --on /data", set("cgroup:/batch", weir.SetRequest{Limits: write("/data")})},
		{"set --dry-run cgroup:/batch --write 5MB/s --read max --read-iops 10 --write-iops 20 --on /dev/vda",
			set("cgroup:/batch", weir.SetRequest{Limits: []weir.Limit{{On: "/dev/vda", Rates: weir.Rates{WBPS: 5e6, RBPS: weir.Unlimited, RIOPS: 10, WIOPS: 20}}}})},
		{"set --dry-run pid:4711 --write 5MB/s", set("pid:4711", weir.SetRequest{Limits: write("")})},
		{"set --dry-run pid:4711 --write 5MB/s --whole-cgroup --hold kernel", set("pid:4711", weir.SetRequest{Limits: write(""), Whole: true, Hold: weir.HoldKernel})},
		{"set --dry-run cgroup:/batch --write 5MB/s --persist", set("cgroup:/batch", weir.SetRequest{Limits: write(""), Persist: true})},
		{"set --dry-run cgroup:/batch --write 5MB/s --on /none", set("cgroup:/batch", weir.SetRequest{Limits: write("/none")})},
		{"clear --dry-run cgroup:/batch", clear("cgroup:/batch")},
		{"clear --dry-run cgroup:/batch --on /data", clear("cgroup:/batch", "/data")},
		{"clear --dry-run pid:4711", clear("pid:4711")},
		{"clear --dry-run cgroup:/none", clear("cgroup:/none")},
		{"why", explain("", weir.WhyRequest{})},
		{"why /data --write 5MB/s --hold kernel", explain("/data", weir.WhyRequest{Limits: write(""), Hold: weir.HoldKernel})},
		{"why /data --write 5MB/s", explain("/data", weir.WhyRequest{Limits: write("")})},
		{"why cgroup:/batch --write 5MB/s", explain("cgroup:/batch", weir.WhyRequest{Limits: write("")})},
		{"why cgroup:/batch", explain("cgroup:/batch", weir.WhyRequest{})},
		{"why cgroup:/batch --on /data", explain("cgroup:/batch", weir.WhyRequest{Limits: []weir.Limit{{On: "/data"}}})},
		{"why vdb", explain("vdb", weir.WhyRequest{})},
		{"why cgroup:/none", explain("cgroup:/none", weir.WhyRequest{})},
	} {
		for _, machine := range []string{"v1", "v2"} {
			root, remove := copyOf(machine)
			compare(t, program, root, c.args, c.calls)
			remove()
		}
	}
}

// compare has the command line and the library answer the same question.
func compare(t *testing.T, program, root, args string, calls func(*weir.Host) (document, error)) {
	t.Helper()
	h, err := weir.Open(weir.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	doc, refused := calls(h)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, append(strings.Fields(args), "--json", "--root", root)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	if refused != nil {
		want := 1
		switch {
		case errors.Is(refused, weir.ErrWrongUse):
			want = 2
		case errors.Is(refused, weir.ErrNotPossible):
			want = 3
		}
		if ended == nil || ended.ExitCode() != want {
			t.Errorf("weir %s on %s: %v\n%s\nand the library: %v", args, root, ended, stderr.String(), refused)
		}
		return
	}
	var theirs document
	if err := json.Unmarshal(stdout.Bytes(), &theirs); err != nil {
		t.Fatalf("weir %s: %v\n%s", args, err, stderr.String())
	}
	own := decoded(t, doc)
	if theirs.only(own); !reflect.DeepEqual(own, theirs) {
		t.Errorf("weir %s on %s:\n%v\nand the library\n%v", args, root, theirs, own)
	}
}

// TestSameProof compares what the library and the command line make of the same measurement.
func TestSameProof(t *testing.T) {
	h, done := open("v2", still)
	defer done()
	found, err := weir.Inner(h).Target(context.Background(), "cgroup:/batch/night")
	if err != nil {
		t.Fatal(err)
	}
	vdb := blkdev.Device{Node: "/dev/vdb", Number: blkdev.Number{Major: 254, Minor: 16}}
	measured := prove.Proof{Target: &found, Version: cgroupfs.V2, Kernel: "6.12.0", Rows: []prove.Row{
		{Test: prove.Test{Path: load.Direct, Key: limit.WBPS, Rate: 10e6}, Name: "direct write", Device: vdb, Judgement: prove.Judgement{Verdict: prove.Held},
			Writer: prove.Seen{Rate: 9, Low: 8, High: 10}, Cgroup: prove.Seen{Rate: 7, Low: 6, High: 8}, Disk: prove.Seen{Rate: 5, Low: 4, High: 6},
			Window: 3 * time.Second, P50: time.Millisecond, P99: 2 * time.Millisecond, Max: time.Second, Warning: []string{"w"}},
		{Test: prove.Test{Path: load.Buffered, Key: limit.RIOPS, Rate: 500}, Name: "buffered read", Device: vdb, Why: "escaped", Findings: []int{2},
			Judgement: prove.Judgement{Verdict: prove.NotHeld, Reason: prove.Escaped}},
	}, Explained: &why.Report{Findings: []why.Finding{{Number: 1, Code: "other"}, {Number: 2, Code: "foreign-inode", Severity: why.Breaks, Text: "x",
		Evidence: []why.Evidence{{File: "/f", Value: "v"}}, Fixes: []why.Fix{{Text: "y", Lines: []string{"z"}}}}}}}
	proof := weir.ProofOf(measured)
	if proof.Verdict != weir.NotHeld || len(proof.Findings) != 1 {
		t.Errorf("%+v", proof)
	}
	own, theirs := decoded(t, proofIn(proof)), decoded(t, api.ProofOf(measured, ""))
	if theirs.only(own); !reflect.DeepEqual(own, theirs) {
		t.Errorf("%v\nand the library\n%v", theirs, own)
	}
}

// Observed are a target's own reads and writes, under its own limits and those above.
func TestProveObserved(t *testing.T) {
	h, done := open("v2", still)
	defer done()
	told := make(chan string, 1000)
	p, err := h.Prove(context.Background(), "cgroup:/batch/night", weir.ProveRequest{Observe: time.Second, Progress: func(what string, _ float64) { told <- what }})
	if err != nil || len(p.Rows) != 3 || !p.Observed || p.Verdict != weir.CannotTell || len(p.Notes) != 1 || p.Notes[0].Code != "limits-above" || len(told) == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Prove(ctx, "cgroup:/batch/night", weir.ProveRequest{Observe: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done: %v", err)
	}
}

// TestSameForms compares what the library and the command line make of what no copy has.
func TestSameForms(t *testing.T) {
	vdb := blkdev.Device{Node: "/dev/vdb", Number: blkdev.Number{Major: 254, Minor: 16}}
	l := limit.Limit{RBPS: limit.PerSecond(1), WBPS: limit.Unlimited, RIOPS: limit.PerSecond(3), WIOPS: limit.PerSecond(4)}
	group := limiting.Group{Target: "docker:web", Path: "/x", Version: cgroupfs.V1, Owner: targets.Owner{Kind: "docker", Name: "1f"}, Processes: 2,
		Paced: 5, Escapes: 6, Lapsed: "lapsed", Missed: "missed",
		Devices: []limiting.Device{{Device: vdb, Limit: l, Rates: &watch.Rates{RBPS: 1, WBPS: 2, RIOPS: 3, WIOPS: 4}, Volume: "v"}},
		Record:  &targets.Record{Limits: []targets.Recorded{{Path: "/dev/vdb", Device: vdb.Number, Limit: l}, {Path: "/dev/none", Err: errors.New("none")}}},
		Kept:    []limit.Asked{{On: "/data", Limit: l}, {Limit: l, Hold: limit.HoldPacer}}}
	steps := []hold.Step{{Mkdir: "/x"}, {File: "/f", Line: "l"}, {File: "/f"}, {Unit: "u", Property: "p", Persist: true}, {Command: "c"},
		{Pace: &hold.Pace{Cgroup: "/x", WBPS: 5, Devices: []blkdev.Number{vdb.Number}, Escapes: true}}, {Pace: &hold.Pace{Cgroup: "/y"}}}
	for name, c := range map[string][2]document{
		"show":  {decoded(t, shownIn([]weir.Limited{weir.LimitedOf(group)})), decoded(t, api.ShowOf(limiting.Shown{Groups: []limiting.Group{group}}))},
		"steps": {decoded(t, stepsIn(weir.StepsOf(steps))), decoded(t, api.DryRunOf("set", steps))},
	} {
		if c[1].only(c[0]); !reflect.DeepEqual(c[0], c[1]) {
			t.Errorf("%s:\n%v\nand the library\n%v", name, c[1], c[0])
		}
	}
	words := []string{"make cgroup /x", `write "l" to /f`, "remove /f", "systemd: set p of u", "run c", "pacer: hold cgroup /x to 5 B/s", "pacer: release cgroup /y"}
	for i, s := range weir.StepsOf(steps) {
		if s.String() != words[i] {
			t.Errorf("%q, want %q", s, words[i])
		}
	}
}
