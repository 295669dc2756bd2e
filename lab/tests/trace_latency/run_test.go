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
	Direct   bool
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
		Seconds  float64
		Split    map[string]float64 `json:"split_seconds"`
		AboveP50 map[string]float64 `json:"above_p50_seconds"`
		Verdict  struct {
			Of     string
			Causes []cause
		}
		Reclaim struct {
			Calls int64 `json:"memcg_calls"`
			Bytes int64 `json:"memcg_bytes"`
		}
	}
	SplitOver []struct {
		Writes int
	} `json:"split_over_time"`
}

type cause struct {
	Part  string
	Share float64
}

// share is a part's, of all the time of a run's writes.
func (r run) share(part string) float64 { return r.Trace.Split[part] / r.Trace.Seconds }

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
		if r.Stopped != "" || r.Untraced != "" || r.Trace == nil {
			t.Fatalf("%s: stopped %q, untraced %q", r.Name, r.Stopped, r.Untraced)
		}
		t.Logf("%s: %d writes in %.1f s: mean %.0f p50 %.0f p99 %.0f max %.0f µs; %s; split %.3v; above p50 %.3v; %+v", r.Name, r.Count, r.Seconds, r.Mean, r.P50, r.P99, r.Max,
			verdict(r), r.Trace.Split, r.Trace.AboveP50, r.Trace.Reclaim)
		writes := 0
		for _, s := range r.SplitOver {
			writes += s.Writes
		}
		// The writer is traced from its start, and knows of each write itself.
		if n := len(r.Slots); n == 0 || len(r.SplitOver) == 0 || writes < r.Count || writes > r.Count+r.Count/50 {
			t.Errorf("%s: %d slots; %d writes in %d splits, and the writer did %d", r.Name, n, writes, len(r.SplitOver), r.Count)
		}
		if sum := r.Mean * float64(r.Count) / 1e6; r.Trace.Seconds < 0.95*sum || r.Trace.Seconds > 1.05*sum {
			t.Errorf("%s: the trace has %.3f s in writes, and the writer %.3f s", r.Name, r.Trace.Seconds, sum)
		}
	}
	t.Logf("%s", strings.Join(c.Words, "\n"))
	return c
}

func verdict(r run) string {
	text := "of " + r.Trace.Verdict.Of
	for _, c := range r.Trace.Verdict.Causes {
		text += " " + c.Part
	}
	return text
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
		write(name, value)
		t.Cleanup(func() {
			if strings.TrimSpace(string(was)) != "0" {
				write(name, string(was))
				return
			}
			ratio := map[string]string{"dirty_bytes": "20", "dirty_background_bytes": "10"}[name] // the kernel's own
			write(strings.TrimSuffix(name, "bytes")+"ratio", ratio)
		})
	}
}
