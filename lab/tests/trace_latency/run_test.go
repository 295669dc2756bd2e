package latency_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// copied is what weir trace --latency --json says.
type copied struct {
	Runs  []run
	Words []string
}

type run struct {
	Name     string
	Stopped  string
	Untraced string
	Count    int
	Seconds  float64
	Mean     float64 `json:"mean_us"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Max      float64 `json:"max_us"`
	Slots    []struct {
		Bytes int64
	}
	Trace *struct {
		Seconds float64
		Split   map[string]float64 `json:"split_seconds"`
		Verdict struct {
			Of     string
			Causes []struct{ Part string }
		}
		Reclaim struct {
			Calls int64 `json:"memcg_calls"`
		}
	}
	SplitOver []struct {
		Writes int
	} `json:"split_over_time"`
}

// share is a part's, of all the time of a run's writes.
func (r run) share(part string) float64 { return r.Trace.Split[part] / r.Trace.Seconds }

// wait is the part that a run's writes wait for longest, without waits for a processor: of
// those an emulated guest on a busy machine has any number.
func (r run) wait() (longest string) {
	for part, seconds := range r.Trace.Split {
		if part != "cpu" && part != "run_queue" && seconds > r.Trace.Split[longest] {
			longest = part
		}
	}
	return longest
}

// trace runs weir trace and reads its document.
func trace(t *testing.T, document any, args ...string) {
	t.Helper()
	out, err := exec.Command("weir", append([]string{"trace", "--json"}, args...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("weir trace %v: %v\n%s", args, err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, document); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
}

// latency runs the experiment, and checks what must be true of each.
func latency(t *testing.T, args ...string) copied {
	t.Helper()
	var c copied
	trace(t, &c, append([]string{"--latency"}, args...)...)
	for _, r := range c.Runs {
		t.Logf("%s: %d writes in %.1f s: mean %.0f p50 %.0f p99 %.0f max %.0f µs", r.Name, r.Count, r.Seconds, r.Mean, r.P50, r.P99, r.Max)
		if r.Stopped != "" || len(r.Slots) == 0 {
			t.Fatalf("%s: stopped %q, %d slots", r.Name, r.Stopped, len(r.Slots))
		}
	}
	t.Logf("%s", strings.Join(c.Words, "\n"))
	return c
}

// traced is latency where the kernel can be traced.
func traced(t *testing.T, args ...string) copied {
	t.Helper()
	c := latency(t, args...)
	for _, r := range c.Runs {
		if r.Trace == nil {
			t.Fatalf("%s: untraced: %s", r.Name, r.Untraced)
		}
		writes := 0
		for _, s := range r.SplitOver {
			writes += s.Writes
		}
		// The writer is traced from its start; of a thousand writes a few are not seen on 7.3.
		if len(r.SplitOver) == 0 || writes < r.Count-r.Count/100 || writes > r.Count+r.Count/50 {
			t.Errorf("%s: %d writes in %d splits, and the writer did %d", r.Name, writes, len(r.SplitOver), r.Count)
		}
		// What the hooks themselves take before a call and after it is the writer's time and
		// not the trace's: in an emulated guest that is a quarter of it.
		sum := r.Mean * float64(r.Count) / 1e6
		t.Logf("%s: %.3f s traced of %.3f s, of %s: %v; reclaims %d; %v", r.Name, r.Trace.Seconds, sum, r.Trace.Verdict.Of, r.Trace.Verdict.Causes, r.Trace.Reclaim.Calls, r.Trace.Split)
		if r.Trace.Seconds < 0.5*sum || r.Trace.Seconds > 1.05*sum {
			t.Errorf("%s: the trace has %.3f s in writes, and the writer %.3f s", r.Name, r.Trace.Seconds, sum)
		}
	}
	return c
}

// set writes settings of vm.dirty_*, and puts them back at the test's end. The kernel
// sets the other one of a pair to 0.
func set(t *testing.T, values map[string]string) {
	t.Helper()
	write := func(name, value string) {
		if err := os.WriteFile("/proc/sys/vm/"+name, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range values {
		was, err := os.ReadFile("/proc/sys/vm/" + name)
		if err != nil {
			t.Fatal(err)
		}
		before := strings.TrimSpace(string(was))
		write(name, value)
		t.Cleanup(func() {
			if before != "0" {
				write(name, before)
				return
			}
			usual := map[string]string{"dirty_bytes": "20", "dirty_background_bytes": "10"} // the kernel's own
			write(strings.TrimSuffix(name, "bytes")+"ratio", usual[name])
		})
	}
}
