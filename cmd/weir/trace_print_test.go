package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/plot"
	"github.com/weir-io/weir/internal/trace"
	"github.com/weir-io/weir/lab"
)

// printed is a report as a person gets it: data, and messages.
func printed(t *testing.T, doc traceDocument) (data, messages string) {
	t.Helper()
	var d, m bytes.Buffer
	a := &app{out: cli.Out{Data: &d, Messages: &m}}
	a.printTrace(doc, &traceFlags{kinds: []trace.Kind{trace.Write, trace.Fsync}, verbose: doc.Target == "verbose"})
	if err := a.out.Err(); err != nil {
		t.Fatal(err)
	}
	return d.String(), m.String()
}

// held is a group at its memory limit, which also flushes to a slow disk.
func held() traceDocument {
	return traceDocument{Target: "docker:web", SlowCount: 45, Report: trace.Report{
		Seconds: 10,
		Ops: []trace.OpsReport{
			{Kind: "write", Count: 12480, Errors: 3, Seconds: 0.9, P50: 31, P99: 212, Max: 9100,
				Split:    map[string]float64{"cpu": 0.5, "memcg_reclaim": 0.4},
				AboveP50: map[string]float64{"cpu": 0.003, "memcg_reclaim": 0.332, "dirty_throttling": 0.028, "blk_throttle": 0.008, "journal_locks": 0.012, "run_queue": 0.016, "other": 0.001},
				Verdict:  trace.Verdict{Of: "above_p50"}},
			{Kind: "fsync", Count: 7, Seconds: 1.6, P50: 204000, P99: 350000, Max: 350000,
				Split: map[string]float64{"device": 1.6}, Verdict: trace.Verdict{Of: "all"}},
		},
		Behind: []trace.BehindReport{{Direction: "write", Requests: 1204, Bytes: 818_000_000, ThrottleSeconds: new(80.6), QueueSeconds: 0.12, DeviceSeconds: 1.5, TotalMost: 1.52e6}},
		Advice: []trace.Advice{{Code: "memory", Text: "The group is at its memory limit."}},
		Slow: []trace.Slow{{After: 1.25, Kind: "fsync", PID: 4711, Process: "postgres", File: "/data/pg_wal/0001", Took: 350000, Cause: "device"},
			{After: 0.5, Kind: "write", PID: 4712, Process: "a\x1b[2J", File: "x\ny", Bytes: 65536, Took: 9100, Cause: "memcg_reclaim"}},
		Files: []trace.File{{File: "/data/pg_wal/0001", Kind: "fsync", Count: 7, Seconds: 1.6, Max: 350000, Cause: "device"},
			{File: "/data/base/1", Kind: "write", Count: 12480, Bytes: 818_000_000, Seconds: 0.9, Max: 9100, Cause: "cpu"}},
		Missing: []trace.Missing{{Hook: "fentry of the block throttle", Reason: "operation not permitted; kprobe: " + strings.Repeat("x", 300), Without: "weir infers a wait in blk-throttle from what the throttle last released for the same group and disk; for background I/O it is not known"}},
		Lost:    trace.Lost{Events: 1200},
	}}
}

const heldText = `docker:web · 10.0 s
write  12 480 calls  1 248/s  p50   31 µs  p99  212 µs  max  9.1 ms  3 failed
where the time above p50 went (400 ms of 900 ms):
  memcg reclaim      ████████████████▋      83 %
  dirty throttling   █▍                      7 %
  run queue          ▊                       4 %
  journal, locks     ▋                       3 %
  blk-throttle       ▍                       2 %
  page cache, CPU    ▏                       1 %
  the rest           ▏                      <1 %

fsync       7 calls    0.7/s  p50  204 ms  p99  350 ms  max  350 ms
where the time went (1.6 s of 1.6 s):
  device             ████████████████████  100 %
The group is at its memory limit.

background I/O, which no traced call is known to wait for (mostly writeback); mean per request:
                                 BLK-THROTTLE   QUEUE  DEVICE  LONGEST
  write  1 204 requests  818 MB         67 ms  100 µs  1.2 ms    1.5 s

45 operations slow:
       AT  PROCESS                            TOOK  MAINLY         FILE
  1.250 s  postgres (4711)  fsync           350 ms  device         /data/pg_wal/0001
  0.500 s  a\x1b[2J (4712)  write  65.5 kB  9.1 ms  memcg reclaim  x\ny
  and 43 more (--json lists more of them)

by file:
          CALLS   BYTES    TIME     MAX  MAINLY           FILE
  fsync       7           1.6 s  350 ms  device           /data/pg_wal/0001
  write  12 480  818 MB  900 ms  9.1 ms  page cache, CPU  /data/base/1
`

const heldMessages = `weir: this kernel has no fentry of the block throttle (--verbose says what weir cannot show without it)
weir: lost: 1 200 slow operations not listed: they came too fast
`

func TestPrintTrace(t *testing.T) {
	lab.Unit(t)
	data, messages := printed(t, held())
	if data != heldText {
		t.Errorf("%s\nwant\n%s", data, heldText)
	}
	if messages != heldMessages {
		t.Errorf("%s\nwant\n%s", messages, heldMessages)
	}
}

func TestPrintTraceOfNothing(t *testing.T) {
	lab.Unit(t)
	data, messages := printed(t, traceDocument{Report: trace.Report{Seconds: 3}})
	if want := "the whole host · 3.0 s\nnothing seen: no write, fsync on a file of a disk\n"; data != want {
		t.Errorf("%s\nwant\n%s", data, want)
	}
	if !strings.Contains(messages, "not traced: splice") {
		t.Error(messages)
	}
}

// What cannot be had takes one line; --verbose has the rest.
func TestPrintTraceMissing(t *testing.T) {
	doc := held()
	doc.Lost = trace.Lost{}
	doc.Missing = append(doc.Missing, trace.Missing{Hook: "fentry, fexit of page faults", Reason: "refused", Without: "page faults are not seen"})
	_, messages := printed(t, doc)
	if want := "weir: this kernel has no fentry of the block throttle; no fentry, fexit of page faults (--verbose says what weir cannot show without it)\n"; messages != want {
		t.Errorf("%q, want %q", messages, want)
	}
	doc.Target = "verbose"
	_, messages = printed(t, doc)
	for _, m := range doc.Missing {
		if want := "  " + m.Hook + ": " + m.Without + " (" + short(m.Reason) + ")\n"; !strings.Contains(messages, want) {
			t.Errorf("%q, want %q in it", messages, want)
		}
	}
}

// What cannot be measured is not 0.
func TestPrintTraceThrottleNotKnown(t *testing.T) {
	doc := held()
	doc.Behind[0].ThrottleSeconds = nil
	data, _ := printed(t, doc)
	if want := "write  1 204 requests  818 MB     not known  100 µs"; !strings.Contains(data, want) {
		t.Errorf("%s\nwant %q", data, want)
	}
}

// Calls that were not fully seen are named, with what that means for the figures.
func TestPrintTraceNotFullySeen(t *testing.T) {
	doc := held()
	doc.Ops[0].Unseen = trace.UnseenReport{Count: 12, Seconds: 0.002}
	doc.Ops[1].Unseen = trace.UnseenReport{Count: 1}
	doc.Ops[1].Verdict.Partial = true
	data, _ := printed(t, doc)
	for _, want := range []string{
		"12 calls not fully traced, at least 2.0 ms in all: the kernel skipped some BPF programs that weir had loaded. The figures above leave these calls out.\n",
		"1 call not fully traced: the kernel skipped some BPF programs that weir had loaded. The figures above leave these calls out, so the shares may not be right for all calls. Trace again, for longer or on a less busy host.\n",
	} {
		if !strings.Contains(data, want) {
			t.Errorf("%s\nwant %q", data, want)
		}
	}
}

func TestShort(t *testing.T) {
	lab.Unit(t)
	for reason, want := range map[string]string{"": "", "a; b": "a", strings.Repeat("é", 100): strings.Repeat("é", reasonRunes) + "…"} {
		if got := short(reason); got != want {
			t.Errorf("short(%q) = %q, want %q", reason, got, want)
		}
	}
}

// The document has lists, and not null, where there is nothing.
func TestTraceDocument(t *testing.T) {
	lab.Unit(t)
	var s trace.Snapshot
	b, err := json.Marshal(traceDocument{Schema: cli.SchemaOf("trace"), Report: s.Report(&s, []trace.Kind{trace.Write})})
	if err != nil {
		t.Fatal(err)
	}
	// What is not known of memory and dirty pages is null.
	if strings.Count(string(b), "null") != 2 {
		t.Errorf("%s", b)
	}
}

func TestDrawTrace(t *testing.T) {
	lab.Unit(t)
	var s trace.Snapshot
	// 100 writes of 1 ms on the processor, and one of 1 s at the device.
	h := &s.Ops[trace.Write].Histogram
	fast, slow := bucketAt(t, 1_000_000), bucketAt(t, 1_000_000_000)
	h[fast] = trace.Cell{Count: 100, Parts: trace.Split{trace.CPU: 1e8}}
	h[slow] = trace.Cell{Count: 1, Parts: trace.Split{trace.DeviceTime: 1e9}}
	s.Ops[trace.Write].Most = 1e9
	doc := traceDocument{Target: "cgroup:/<x>", Report: s.Report(&trace.Snapshot{}, []trace.Kind{trace.Write})}
	path := filepath.Join(t.TempDir(), "t.svg")
	if err := drawTrace(path, doc, &s); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cgroup:/&lt;x&gt;", "write, 101 calls by latency", ">calls</text>", `fill="` + plot.PartColour(int(trace.DeviceTime)) + `"`, "max 1.0 s", "above p50", ">device<", ">page cache, CPU<", ">91 %<", ">100 %<"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("%q is missing in %s", want, svg)
		}
	}
	if err := drawTrace(path, traceDocument{}, &s); err != nil {
		t.Error(err)
	}
}

func bucketAt(t *testing.T, ns int) int {
	t.Helper()
	for i := range len(trace.Histogram{}) {
		if from, to := trace.Bounds(i); int(from) <= ns && ns < int(to) {
			return i
		}
	}
	t.Fatalf("no bucket has %d ns", ns)
	return 0
}

// Columns have all operations, each once, and are no more than can be seen.
func TestColumnsOf(t *testing.T) {
	lab.Unit(t)
	for _, spread := range []int{0, 1, 50, 89, 90, 91, 200, 470} {
		var h trace.Histogram
		for i := range spread + 1 {
			h[8+i] = trace.Cell{Count: uint64(i%3) + 1, Parts: trace.Split{trace.CPU: 5}}
		}
		all := columnsOf(&h)
		count, cpu := 0.0, 0.0
		for i, c := range all {
			count += c.Count
			cpu += c.Parts[trace.CPU]
			if c.From >= c.To || i > 0 && c.From != all[i-1].To {
				t.Errorf("%d: column %d is %v to %v", spread, i, c.From, c.To)
			}
		}
		if len(all) > columnsMost || uint64(count) != h.Count() || cpu != 5*float64(spread+1) {
			t.Errorf("%d: %d columns with %v operations, %v ns; want %d", spread, len(all), count, cpu, h.Count())
		}
	}
	if got := columnsOf(&trace.Histogram{}); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}
