package running

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/tally"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/lab"
)

var write = limit.Limit{WBPS: limit.PerSecond(10e6)}

// lines spells steps in short.
func lines(steps []hold.Step) (all []string) {
	for _, s := range steps {
		switch {
		case s.Mkdir != "":
			all = append(all, "mkdir "+s.Mkdir[strings.LastIndex(s.Mkdir, "/")+1:])
		case s.Pace != nil:
			all = append(all, "pace "+s.Pace.Cgroup)
		default:
			all = append(all, s.Line+" > "+s.File[strings.LastIndex(s.File, "/")+1:])
		}
	}
	return all
}

// What is prepared for a copy of a machine is what would be written there, and nothing is.
func TestPrepare(t *testing.T) {
	lab.Unit(t)
	for name, want := range map[string][]string{
		"v1": {"mkdir weir-job", "mkdir weir-job", "67108864 > memory.limit_in_bytes", "254:0 10000000 > blkio.throttle.write_bps_device"},
		"v2": {"mkdir weir-job", "+memory > cgroup.subtree_control", "67108864 > memory.max", "254:0 wbps=10000000 > io.max"},
	} {
		h := hosttest.Open(t, name, nil, host.Options{})
		r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Asked: []limit.Asked{{On: "254:0", Limit: write}}, Memory: 64 << 20, Name: "job"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Decided.Hold != limit.HoldAuto { // nobody has asked for another
			t.Errorf("%s: buffered writes are held by %q", name, r.Decided.Hold)
		}
		if len(r.Decided.Places) != 1 || r.Decided.Places[0].Limit != write || len(r.Notes) != 1 || r.Notes[0].Code != "memory-limit" {
			t.Errorf("%s: %+v, %v", name, r.Decided.Places, r.Notes)
		}
		for range 2 { // asking changes nothing
			steps, err := r.Steps()
			if got := lines(steps); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
		}
	}
}

func TestPrepareRefuses(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	for about, c := range map[string]struct {
		request Request
		class   fault.Class
	}{
		"no command":      {Request{}, fault.WrongUse},
		"little memory":   {Request{Command: []string{"true"}, Memory: MemoryLeast - 1}, fault.WrongUse},
		"no such device":  {Request{Command: []string{"true"}, Asked: []limit.Asked{{On: "99:99", Limit: write}}}, fault.NotFound},
		"no such version": {Request{Command: []string{"true"}, Version: cgroupfs.V1}, fault.NotPossible},
	} {
		r, err := Prepare(t.Context(), h, c.request)
		if err == nil || fault.ClassOf(err) != c.class || r == nil {
			t.Errorf("%s: %v (class %d), want class %d", about, err, fault.ClassOf(err), c.class)
		}
	}
}

// The report has each device of the decision, with what was counted there and a verdict for each
// direction that has a limit.
func TestReport(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	sda, sdb := blkdev.Number{Major: 8}, blkdev.Number{Major: 8, Minor: 16}
	both := limit.Limit{WBPS: limit.PerSecond(10e6), RIOPS: limit.PerSecond(5)}
	decided := place.Decision{Places: []place.Expected{
		{Placed: place.Placed{Device: blkdev.Device{Number: sda, Node: "/dev/sda"}, Limit: both}},
		{Placed: place.Placed{Device: blkdev.Device{Number: sdb, Node: "/dev/sdb"}, Limit: write}},
	}, Paced: &place.Paced{}}
	sum := &tally.Sum{Devices: []tally.Device{{Rule: tally.Rule{Device: sda, Limit: both}, Disk: blkdev.Counters{WrittenBytes: 7},
		Charged: cgroupfs.Stat{ReadBytes: 4096, Reads: 1}}}, Escapes: []escape.File{{Path: "/f"}}}
	result := launch.Result{Ended: true, Status: 3, Elapsed: time.Second, Tally: sum, Stats: []cgroupfs.Stat{{Device: sdb, WrittenBytes: 9}}}
	r := reportOf(io.Root(), decided, "/usr/bin/docker", result)
	if r.Status != 3 || r.Cgroup != "/" || r.Version != cgroupfs.V2 || r.Hold != limit.HoldPacer || r.HandedOn != "docker" || len(r.Devices) != 2 {
		t.Fatalf("%+v", r)
	}
	first, second := r.Devices[0], r.Devices[1]
	if first.Charged != nil || first.Disk == nil || first.Disk.WrittenBytes != 7 || first.Read == nil || first.Read.State != tally.Held || first.Read.Bytes != 4096 || first.Write == nil || first.Write.State != tally.Idle {
		t.Errorf("the first device: %+v", first)
	}
	if second.Charged == nil || second.Charged.WrittenBytes != 9 || second.Disk != nil || second.Read != nil || second.Write != nil {
		t.Errorf("the second device, which was not measured: %+v", second)
	}
	decided.Paced = nil
	r = reportOf(io.Root(), decided, "dd", launch.Result{})
	if r.Hold != limit.HoldKernel || r.HandedOn != "" || r.Devices[0].Write != nil {
		t.Errorf("nothing was measured: %+v", r)
	}
}

// rulesOf are the rules of the decision, one for each device.
func TestRules(t *testing.T) {
	lab.Unit(t)
	sda := blkdev.Number{Major: 8}
	got := rulesOf(place.Decision{Places: []place.Expected{{Placed: place.Placed{Device: blkdev.Device{Number: sda}, Limit: write}}}})
	if len(got) != 1 || got[0].Device != sda || got[0].Limit != write {
		t.Errorf("%+v", got)
	}
	if rulesOf(place.Decision{}) != nil {
		t.Error("rules without a limit")
	}
}
