package text

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

// printed is a report as a person gets it: data, and messages.
func printed(t *testing.T, doc trace.Traced) (data, messages string) {
	t.Helper()
	var d, m bytes.Buffer
	out := cli.Out{Data: &d, Messages: &m}
	Trace(&out, doc, []trace.Kind{trace.Write, trace.Fsync}, doc.Target == "verbose")
	if err := out.Err(); err != nil {
		t.Fatal(err)
	}
	return d.String(), m.String()
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

const heldMessages = `weir: this kernel has no fentry of the block throttle (--verbose says what changes without it)
weir: lost: 1 200 slow operations not listed: they came too fast
`

func TestPrintTrace(t *testing.T) {
	lab.Unit(t)
	data, messages := printed(t, apitest.Trace())
	if data != heldText {
		t.Errorf("%s\nwant\n%s", data, heldText)
	}
	if messages != heldMessages {
		t.Errorf("%s\nwant\n%s", messages, heldMessages)
	}
}

func TestPrintTraceOfNothing(t *testing.T) {
	lab.Unit(t)
	data, messages := printed(t, trace.Traced{Report: trace.Report{Took: 3 * time.Second}})
	if want := "the whole host · 3.0 s\nnothing seen: no write, fsync on a file of a disk\n"; data != want {
		t.Errorf("%s\nwant\n%s", data, want)
	}
	if !strings.Contains(messages, "not traced: splice") {
		t.Error(messages)
	}
}

// What cannot be had takes one line; --verbose has the rest.
func TestPrintTraceMissing(t *testing.T) {
	doc := apitest.Trace()
	doc.Lost = trace.Lost{}
	doc.Missing = append(doc.Missing, trace.Missing{Hook: "fentry, fexit of page faults", Reason: "refused", Without: "page faults are not seen"})
	_, messages := printed(t, doc)
	if want := "weir: this kernel has no fentry of the block throttle; no fentry, fexit of page faults (--verbose says what changes without it)\n"; messages != want {
		t.Errorf("%q, want %q", messages, want)
	}
	all := doc.Missing
	doc.Missing = []trace.Missing{{Hook: trace.CallsHook, Reason: "refused", Without: "each system call takes longer"}}
	_, messages = printed(t, doc)
	if want := "weir: this kernel has no fentry, fexit of system calls, so each system call of this host took longer during the trace (--verbose says what changes without it)\n"; messages != want {
		t.Errorf("%q, want %q", messages, want)
	}
	doc.Missing, doc.Target = all, "verbose"
	_, messages = printed(t, doc)
	for _, m := range doc.Missing {
		if want := "  " + m.Hook + ": " + m.Without + " (" + short(m.Reason) + ")\n"; !strings.Contains(messages, want) {
			t.Errorf("%q, want %q in it", messages, want)
		}
	}
}

// What cannot be measured is not 0.
func TestPrintTraceThrottleNotKnown(t *testing.T) {
	doc := apitest.Trace()
	doc.Behind[0].ThrottleKnown = false
	data, _ := printed(t, doc)
	if want := "write  1 204 requests  818 MB     not known  100 µs"; !strings.Contains(data, want) {
		t.Errorf("%s\nwant %q", data, want)
	}
}

// Calls that were not fully seen are named, with what that means for the figures.
func TestPrintTraceNotFullySeen(t *testing.T) {
	doc := apitest.Trace()
	doc.Ops[0].Unseen = trace.Unseen{Count: 12, Time: 2 * time.Millisecond}
	doc.Ops[1].Unseen = trace.Unseen{Count: 1}
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
