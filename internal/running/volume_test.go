package running

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/daemon/systemd/systemdtest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// systemd is told of no limit of a logical volume: it would limit the volume's disk, and of two volumes one limit
// would be lost. weir writes both into the scope's file, and a dry run says so.
func TestAScopesVolumesAreLimitedAndNotTheirDisk(t *testing.T) {
	lab.Unit(t)
	files := maps.Clone(hierarchies(onlyV2, "0::/\n"))
	files["run/systemd/system/x"] = ""
	var s *systemdtest.Systemd
	h := hosttest.Open(t, "v2", files, host.Options{Systemd: func(ctx context.Context) (*systemd.Conn, error) { return s.Dial(t)(ctx) }})
	hosttest.Volume(t, h.Root, "dm-0", "253:0", "vdb")
	hosttest.Volume(t, h.Root, "dm-1", "253:1", "vdb")
	s = systemdtest.New(h.Root)
	s.Started = func(unit string, pid int) error { return makeScope(h.Root, "v2", unit, pid) }
	const file = "sys/fs/cgroup/system.slice/weir-job.scope/io.max"
	s.Rules = func(unit, property, device, rate string) error {
		return hosttest.Take(filepath.Join(h.Root, file), device+" wbps="+rate)
	}
	kernel := hosttest.Rehearse(t, h)
	r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Name: "job", Hold: limit.HoldKernel, Asked: []limit.Asked{
		{On: "254:0", Limit: limit.Limit{WBPS: limit.PerSecond(9e6)}}, {On: "253:0", Limit: limit.Limit{WBPS: limit.PerSecond(5e6)}}, {On: "253:1", Limit: limit.Limit{WBPS: limit.PerSecond(6e6)}}}})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := r.Steps()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	var said, did []string
	for _, step := range steps {
		if strings.Contains(step.Property+step.Line, "254:") || strings.Contains(step.Line, "253:") {
			said = append(said, step.Property+step.Line)
		}
	}
	for _, a := range s.Asked() {
		if strings.HasPrefix(a.Property, "IOW") {
			did = append(did, a.Property)
		}
	}
	for _, w := range kernel.Writes {
		did = append(did, w.Line)
	}
	if want := []string{"IOWriteBandwidthMax=/dev/block/254:0 9000000", "253:0 wbps=5000000", "253:1 wbps=6000000"}; !slices.Equal(said, want) || !slices.Equal(did, want) {
		t.Errorf("said %q, did %q, want %q", said, did, want)
	}
	text, err := os.ReadFile(filepath.Join(h.Root, file))
	if want := "254:0 rbps=max wbps=9000000 riops=max wiops=max\n253:0 rbps=max wbps=5000000 riops=max wiops=max\n253:1 rbps=max wbps=6000000 riops=max wiops=max\n"; err != nil || string(text) != want {
		t.Errorf("in force are %q, %v", text, err)
	}
	if _, err := r.room.Close(); err != nil {
		t.Error(err)
	}
}
