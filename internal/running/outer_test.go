package running

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// startedIn has weir itself be in a group of a copy. The copies limit /batch to 10 MB/s and 500
// operations written to vda and 50 MiB/s read from vdb, and /batch/night to 1000 bytes/s read from
// vdb.
func startedIn(group string, more map[string]string) map[string]string {
	files := maps.Clone(more)
	if files == nil {
		files = map[string]string{}
	}
	files["proc/self/cgroup"] = strings.ReplaceAll("3:name=systemd:X\n2:memory:X\n1:blkio:X\n0::X\n", "X", group)
	return files
}

// placed are the limits on devices, and said the notes.
func placed(r *Run) (all []string) {
	for _, p := range r.Decided.Places {
		all = append(all, fmt.Sprintf("%s: %s", p.Device.Number, p.Limit.Bound()))
	}
	return all
}

func said(r *Run) (all []string) {
	for _, n := range r.Notes {
		all = append(all, n.Code+": "+n.Text)
	}
	return all
}

const (
	outerBytes = "outer-limit: writes to /dev/vda: 10 MB/s, the limit of cgroup /batch, which weir was started in"
	outerOps   = "outer-limit: writes to /dev/vda: 500 ops/s, the limit of cgroup /batch, which weir was started in"
	outerReads = "outer-limit: reads from /dev/vdb: 50 MiB/s, the limit of cgroup /batch, which weir was started in"
	outerNight = "outer-limit: reads from /dev/vdb: 1 kB/s, the limit of cgroup /batch/night, which weir was started in"
)

// What is limited and starts a command by weir run does not leave its limit: neither a rate for
// which the command names a higher one, nor a device that it does not name.
func TestPrepareInALimitedGroup(t *testing.T) {
	lab.Unit(t)
	higher := []limit.Asked{{On: "254:0", Limit: limit.Limit{WBPS: limit.PerSecond(50e6), WIOPS: limit.PerSecond(100), RBPS: limit.Unlimited}}}
	scope := map[string]string{"run/systemd/system/x": ""}
	open := map[string]string{"sys/fs/cgroup/batch/cgroup.procs": "", "sys/fs/cgroup/batch/cgroup.controllers": "io memory", "sys/fs/cgroup/batch/cgroup.subtree_control": "io memory"}
	for about, c := range map[string]struct {
		machine, group string
		more           map[string]string
		asked          []limit.Asked
		places, said   []string
	}{
		"v1":                {"v1", "/batch", nil, nil, []string{"254:16: read 50 MiB/s", "254:0: write 10 MB/s, write 500 ops/s"}, []string{outerReads, outerBytes, outerOps}},
		"v1, more is asked": {"v1", "/batch", nil, higher, []string{"254:0: write 10 MB/s, write 100 ops/s", "254:16: read 50 MiB/s"}, []string{outerReads, outerBytes}},
		"v1, below":         {"v1", "/batch/night", nil, nil, []string{"254:16: read 1 kB/s"}, []string{outerNight}}, // its parent's do not bind it
		"v1, root":          {"v1", "/", map[string]string{"sys/fs/cgroup/blkio/blkio.throttle.write_bps_device": "254:0 7\n"}, nil, nil, nil},
		"v2":                {"v2", "/batch", nil, nil, []string{"254:0: write 10 MB/s, write 500 ops/s", "254:16: read 50 MiB/s"}, []string{outerBytes, outerOps, outerReads}},
		"v2, more is asked": {"v2", "/batch", nil, higher, []string{"254:0: write 10 MB/s, write 100 ops/s", "254:16: read 50 MiB/s"}, []string{outerBytes, outerReads}},
		"v2, a scope":       {"v2", "/batch/night", scope, higher, []string{"254:0: write 10 MB/s, write 100 ops/s", "254:16: read 1 kB/s"}, []string{outerNight, outerBytes}},
		"v2, a group below": {"v2", "/batch", open, nil, nil, nil}, // which the limit binds
		"v2, root":          {"v2", "/", nil, higher, []string{"254:0: write 50 MB/s, write 100 ops/s"}, nil},
	} {
		h := hosttest.Open(t, c.machine, startedIn(c.group, c.more), host.Options{})
		r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Name: "job", Asked: c.asked})
		if err != nil {
			t.Errorf("%s: %v", about, err)
			continue
		}
		if got := placed(r); !slices.Equal(got, c.places) {
			t.Errorf("%s: the limits are %q, want %q", about, got, c.places)
		}
		if got := said(r); !slices.Equal(got, c.said) || len(r.Outer) != len(c.said) {
			t.Errorf("%s: it says %q, want %q (%d)", about, got, c.said, len(r.Outer))
		}
		steps, err := r.Steps()
		written := fmt.Sprintf("%+v", steps)
		if err != nil || strings.Contains(written, "10000000") != slices.Contains(c.said, outerBytes) || len(r.options.Changes) != len(c.places) {
			t.Errorf("%s: the steps are %s, %v", about, written, err)
		}
	}
}

// A device that nobody named gets the file system that is on it, which decides about buffered writes.
func TestAnUnnamedDeviceHasItsMount(t *testing.T) {
	lab.Unit(t)
	for group, want := range map[string]string{"/batch": "/data", "/loose": "8:160"} {
		h := hosttest.Open(t, "v2", startedIn(group, map[string]string{"sys/fs/cgroup/loose/cgroup.procs": "7\n", "sys/fs/cgroup/loose/cgroup.type": "domain\n",
			"sys/fs/cgroup/loose/cgroup.subtree_control": "", "sys/fs/cgroup/loose/io.max": "8:160 rbps=5 wbps=max riops=max wiops=max\n"}), host.Options{})
		r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}})
		if err != nil {
			t.Fatal(err)
		}
		last := r.Decided.Places[len(r.Decided.Places)-1]
		if !strings.Contains(last.Chain.String(), want) || (last.FS() != nil) != (group == "/batch") {
			t.Errorf("%s: %s, %+v", group, last.Chain, last.FS())
		}
	}
}

// If weir's own limits cannot be read, it says so, and goes on with those that it was asked for.
func TestPrepareWithoutTheOuterLimits(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", startedIn("/batch", map[string]string{"sys/fs/cgroup/batch/io.max": "nonsense\n"}), host.Options{})
	r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Asked: []limit.Asked{{On: "254:0", Limit: write}}})
	if err != nil || len(r.Decided.Places) != 1 || len(r.Notes) != 1 || r.Notes[0].Code != "outer-unknown" || !strings.Contains(r.Notes[0].Text, "batch/io.max") {
		t.Errorf("%v, %v", said(r), err)
	}
}

// withFreezer is the copy of v1, with a freezer for the pacer.
func withFreezer(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if err := hosttest.Make(dir, "v1"); err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile(filepath.Join(dir, "proc/1/mountinfo"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"proc/1/mountinfo": string(mounts) + "30 24 0:30 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n", "sys/fs/cgroup/freezer/cgroup.procs": ""}
}

// A command does not leave weir's pacer either: what the kernel does not hold of the outer group would
// be held by nobody. weir says that the pacer holds the command only where it does.
func TestPrepareInAPacedGroup(t *testing.T) {
	lab.Unit(t)
	if os.Geteuid() != 0 {
		t.Skip("only root sees what the pacer holds")
	}
	ours := []limit.Asked{{On: "254:0", Limit: limit.Limit{WBPS: limit.PerSecond(5e6)}}}
	for about, c := range map[string]struct {
		machine, group string
		count          string
		asked          []limit.Asked
		hold, decided  limit.Hold
		paced, told    bool
		copied         bool // of a machine, whose pacer cannot be had
	}{
		"v1":                       {machine: "v1", group: "/batch", asked: ours, hold: limit.HoldKernel, decided: limit.HoldPacer, paced: true, told: true},
		"v1, it is held anyway":    {machine: "v1", group: "/batch", asked: ours, decided: limit.HoldAuto, paced: true},
		"v1, beside":               {machine: "v1", group: "/alone", asked: ours, hold: limit.HoldKernel, decided: limit.HoldKernel},
		"v1, no pacer":             {machine: "v1", group: "/batch", asked: ours, hold: limit.HoldKernel, decided: limit.HoldKernel, copied: true},
		"v2":                       {machine: "v2", group: "/batch", asked: ours, decided: limit.HoldPacer, paced: true, told: true},
		"v2, taken over":           {machine: "v2", group: "/batch", decided: limit.HoldPacer, paced: true, told: true},
		"v2, by the kernel":        {machine: "v2", group: "/batch", asked: ours, hold: limit.HoldKernel, decided: limit.HoldPacer, paced: true, told: true},
		"v2, asked for":            {machine: "v2", group: "/batch", asked: ours, hold: limit.HoldPacer, decided: limit.HoldPacer, paced: true},
		"v2, escapes, without BPF": {machine: "v2", group: "/batch", count: pacer.CountEscaped, asked: ours, hold: limit.HoldKernel, decided: limit.HoldKernel},
		"v2, beside":               {machine: "v2", group: "/alone", asked: ours, decided: limit.HoldAuto},
		"v2, no pacer":             {machine: "v2", group: "/batch", asked: ours, decided: limit.HoldAuto, copied: true},
	} {
		more := map[string]string(nil)
		if c.machine == "v1" {
			more = withFreezer(t)
		}
		h := hosttest.Open(t, c.machine, startedIn(c.group, more), host.Options{})
		lock, err := h.State.Own("pacer.lock") // as a pacer that runs
		if err != nil || lock == nil {
			t.Fatal(err)
		}
		defer lock.Unlock()
		limited := pacer.Place{Controller: map[string]string{"v1": "blkio"}[c.machine], Path: "/batch"}
		if _, err := h.State.NewOf("pace", limited.String(), pacer.Job{Limited: limited, Devices: []blkdev.Number{{Major: 254}}, WBPS: 10e6, Count: c.count}); err != nil {
			t.Fatal(err)
		}
		if !c.copied {
			h = h.ForMany() // the copy's devices stay
			h.Root = "/"    // where there is a pacer
		}
		r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Hold: c.hold, Asked: c.asked})
		if err != nil {
			t.Fatalf("%s: %v", about, err)
		}
		told := strings.Contains(strings.Join(said(r), "\n"), "outer-pacer: weir's pacer holds the command's writes, as it holds those of cgroup /batch, which")
		if (r.Decided.Paced != nil) != c.paced || r.Decided.Escapes != nil || told != c.told || r.Decided.Hold != c.decided {
			t.Errorf("%s: %s, %+v, %q", about, r.Decided.Hold, r.Decided.Paced, said(r))
		}
		if r.apart != (c.group == "/batch" && c.count == pacer.CountWritten) || r.kept != c.told {
			t.Errorf("%s: apart %v, kept %v", about, r.apart, r.kept)
		}
	}
}
