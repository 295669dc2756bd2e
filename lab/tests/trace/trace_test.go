package trace_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/internal/outcome"
)

// needTrace asks for what a trace takes. By default one emulated guest is enough: the one
// with v1 has only the time that the others leave, which is no time to measure shares in.
func needTrace(t *testing.T, needs ...lab.Requirement) {
	t.Helper()
	e := lab.Need(t, append([]lab.Requirement{lab.Root, lab.BPF}, needs...)...)
	if e.Cgroups.Blkio != "" {
		lab.Need(t, lab.BPF, lab.Whole)
	}
}

// needTraceNatively asks for what a trace takes that shows the same on each kernel. This host's
// own shows it by default, ten times as fast as an emulated one; the whole matrix has it there too.
func needTraceNatively(t *testing.T, needs ...lab.Requirement) {
	t.Helper()
	if lab.Need(t).Lane == "native" {
		lab.Need(t, append(needs, lab.Root)...)
		return
	}
	needTrace(t, append([]lab.Requirement{lab.Whole, lab.NoSystemd}, needs...)...)
}

// fewest is how many of a load's operations must be seen: all, where the kernel kept none
// from the programs (7.3 does so when it preempts them).
func fewest(made int, lost map[string]uint64) int {
	if lost["missed"] > 0 {
		return made - made/20
	}
	return made
}

// A group is what is traced: a cgroup for I/O, and on v1 one for memory beside it.
type group struct {
	io, memory string // directories; memory may be empty, or io's
	v2         bool
	name       string
}

func newGroup(t *testing.T) group {
	t.Helper()
	cgroups := lab.Here(t).Cgroups
	g := group{name: "trace-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())), v2: cgroups.IOInV2}
	if g.v2 {
		for _, c := range []string{"+io", "+memory"} {
			if err := os.WriteFile(filepath.Join(cgroups.Unified, "cgroup.subtree_control"), []byte(c), 0); err != nil {
				t.Fatal(err)
			}
		}
		g.io = filepath.Join(cgroups.Unified, g.name)
		g.memory = g.io
		lab.Cgroup(t, g.io)
		return g
	}
	g.io = filepath.Join(cgroups.Blkio, g.name)
	lab.Cgroup(t, g.io)
	if cgroups.Memory != "" {
		g.memory = filepath.Join(cgroups.Memory, g.name)
		lab.Cgroup(t, g.memory)
	}
	return g
}

// dirs are the groups that a job enters.
func (g group) dirs() []string {
	if g.memory != "" && g.memory != g.io {
		return []string{g.io, g.memory}
	}
	return []string{g.io}
}

func (g group) set(t *testing.T, dir, file, line string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(line), 0); err != nil {
		t.Fatalf("write %q: %v", line, err)
	}
}

func (g group) limitWrites(t *testing.T, device, bytes string) {
	t.Helper()
	if g.v2 {
		g.set(t, g.io, "io.max", device+" wbps="+bytes)
	} else {
		g.set(t, g.io, "blkio.throttle.write_bps_device", device+" "+bytes)
	}
}

// report is what the tests read of weir trace's document.
type report struct {
	Operations []operations
	Behind     []struct {
		Direction          string
		Requests           uint64
		Bytes              uint64
		BlkThrottleSeconds float64 `json:"blk_throttle_seconds"`
		BlockQueueSeconds  float64 `json:"block_queue_seconds"`
		DeviceSeconds      float64 `json:"device_seconds"`
	}
	Missing []struct{ Hook, Reason string }
	Open    []struct {
		Kind string
		Took float64 `json:"took_us"`
	}
	Lost map[string]uint64
}

type operations struct {
	Kind    string
	Count   int
	Seconds float64
	P50     float64            `json:"p50_us"`
	P99     float64            `json:"p99_us"`
	Split   map[string]float64 `json:"split_seconds"`
	// AboveP50 is what slow ones take beyond the others.
	AboveP50 map[string]float64 `json:"above_p50_seconds"`
	// NotFullySeen are in no other figure.
	NotFullySeen struct{ Count int } `json:"not_fully_seen"`
	Verdict      struct {
		Of     string
		Causes []struct {
			Part  string
			Share float64
		}
	}
}

// of is one kind of operation.
func (r report) of(t *testing.T, kind string) operations {
	t.Helper()
	for _, o := range r.Operations {
		if o.Kind == kind {
			return o
		}
	}
	t.Fatalf("no %s was seen", kind)
	return operations{}
}

// slowest is the kind that took the most time: what somebody who knows nothing looks at.
func (r report) slowest(t *testing.T) operations {
	t.Helper()
	var most operations
	for _, o := range r.Operations {
		if o.Seconds > most.Seconds {
			most = o
		}
	}
	if most.Kind == "" {
		t.Fatal("nothing was seen")
	}
	return most
}

// traced runs jobs within a trace: it begins before them and ends after them.
func traced(t *testing.T, target string, run func() done) (r report, d done) {
	t.Helper()
	trace := startTrace(t, target)
	w := newWitness(t)
	d = run()
	if w != nil {
		d.heard(w.heard(t, d.TID))
	}
	r = trace.end(t)
	t.Logf("weir trace: %s", trace.said)
	for _, o := range r.Operations {
		t.Logf("%s: %d calls, %.3f s, p50 %.0f us, p99 %.0f us; split %v; verdict of %s: %v", o.Kind, o.Count, o.Seconds, o.P50, o.P99, short(o.Split), o.Verdict.Of, o.Verdict.Causes)
	}
	if len(r.Missing) > 0 || len(r.Behind) > 0 {
		t.Logf("missing %v, behind %+v, lost %v", r.Missing, r.Behind, r.Lost)
	}
	return r, d
}

// short leaves out what is nothing.
func short(split map[string]float64) map[string]float64 {
	s := map[string]float64{}
	for part, seconds := range split {
		if seconds > 0 {
			s[part] = math.Round(seconds*1e4) / 1e4
		}
	}
	return s
}

// addsUp asserts that the parts are all of the time that the load has measured itself, but for
// operations that the trace says it has not fully seen.
func addsUp(t *testing.T, r report, kind string, own timed) {
	t.Helper()
	o := r.of(t, kind)
	sum := 0.0
	for _, seconds := range o.Split {
		sum += seconds
	}
	unseen := o.NotFullySeen.Count
	clock := "the load's own clock"
	if own.Loads != 0 {
		clock = fmt.Sprintf("the kernel's record (the load's own clock %.3f s)", own.Loads.Seconds())
	}
	t.Logf("%s: parts %.3f s, %s %.3f s: %.3f; %d of %d calls, %d more not fully traced, %d programs left out",
		kind, sum, clock, own.Took.Seconds(), sum/own.Took.Seconds(), o.Count, own.Count, unseen, r.Lost["missed"])
	if seen := o.Count + unseen; seen < own.Count || seen > own.Count+own.Count/50+16 { // the load's own start and end
		t.Errorf("%s: %d calls seen and %d not fully, the load made %d", kind, o.Count, unseen, own.Count)
	}
	if unseen > own.Count/20 {
		t.Errorf("%s: %d of %d calls were not fully traced, want a twentieth at most", kind, unseen, own.Count)
	}
	// Of what takes less, an emulated processor spends too much between the load's clock and
	// the kernel's; natively it is held against it.
	if own.Took/time.Duration(own.Count) < 2*time.Millisecond {
		return
	}
	// What was not fully seen took no longer than the longest calls.
	least := own.Took
	for _, took := range own.Longest[:min(unseen, len(own.Longest))] {
		least -= took
	}
	if sum < 0.95*least.Seconds() || sum > 1.05*own.Took.Seconds() {
		lab.Measures(t)
		t.Errorf("%s: the parts are %.3f s, want those of calls that took %.3f to %.3f s, give or take 5 %%", kind, sum, least.Seconds(), own.Took.Seconds())
	}
}

// share is a part's, of all the time.
func (o operations) share(part string) float64 { return o.Split[part] / o.Seconds }

// blames asserts the largest cause.
func (o operations) blames(t *testing.T, part string, least float64) {
	t.Helper()
	if len(o.Verdict.Causes) == 0 || o.Verdict.Causes[0].Part != part || o.Verdict.Causes[0].Share < least {
		lab.Measures(t)
		t.Errorf("%s: causes %v of %s, want %s with at least %.2f", o.Kind, o.Verdict.Causes, o.Verdict.Of, part, least)
	}
}

// binds leaves a throttle's share to machines that reach its limit: on others it is not what
// the load waits for. A load that does is at 0.9 of it and more.
func (j job) binds(t *testing.T, own timed, limit int) {
	t.Helper()
	if rate := float64(own.Count*j.Block) / j.For.Seconds(); rate < 0.8*float64(limit) {
		t.Skipf("%sa machine that reaches %d bytes/s (here the load wrote %.0f)", outcome.SkipMark, limit, rate)
	}
}

// names asserts causes, whichever is the larger.
func (o operations) names(t *testing.T, parts ...string) {
	t.Helper()
	named := map[string]bool{}
	for _, c := range o.Verdict.Causes {
		named[c.Part] = true
	}
	for _, part := range parts {
		if !named[part] {
			lab.Measures(t)
			t.Errorf("%s: causes %v of %s, want %s among them", o.Kind, o.Verdict.Causes, o.Verdict.Of, part)
		}
	}
}

// traceFor is how long a job runs, and a trace of it.
func traceFor(t *testing.T) time.Duration {
	t.Helper()
	switch {
	case !testing.Short():
		return 5 * time.Second
	case lab.Here(t).Lane == "native": // where a job does in this time what it does in twice of it emulated
		return 1500 * time.Millisecond
	}
	return 2500 * time.Millisecond
}
