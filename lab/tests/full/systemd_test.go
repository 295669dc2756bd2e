package full

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

func TestSystemdIsProcessOne(t *testing.T) {
	lab.Need(t, lab.Systemd)
	comm, err := os.ReadFile("/proc/1/comm")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(comm)); got != "systemd" {
		t.Errorf("process 1 is %s", got)
	}
	if failed := run(t, "systemctl", "--failed", "--plain", "--no-legend"); failed != "" {
		t.Errorf("failed units:\n%s", failed)
	}
}

// TestLayout looks at the places where systemd mounts what it was told to.
func TestLayout(t *testing.T) {
	e := lab.Need(t, lab.Systemd)
	if e.Cgroups.Mode != e.Promised {
		t.Errorf("found %s, promised %s", e.Cgroups.Mode, e.Promised)
	}
	const at = "/sys/fs/cgroup"
	want := map[environ.Mode][]string{
		environ.V2:     {"cgroup.controllers", "io.stat"},
		environ.V1:     {"blkio/blkio.throttle.write_bps_device", "systemd/system.slice"},
		environ.Hybrid: {"blkio/blkio.throttle.write_bps_device", "unified/cgroup.controllers", "systemd/system.slice"},
	}[e.Promised]
	for _, name := range want {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestScopeLimitReachesTheKernel asks systemd for a limit on a transient scope,
// and reads what the kernel holds for it.
func TestScopeLimitReachesTheKernel(t *testing.T) {
	e := lab.Need(t, lab.Systemd)
	disk := lab.RawDisk(t)
	const unit = "weir-lab-probe"
	group := "system.slice/" + unit + ".scope"
	file := filepath.Join(e.Cgroups.Unified, group, "io.max")
	want := fmt.Sprintf("%v rbps=max wbps=1000000 riops=max wiops=max", disk.Number)
	if e.Cgroups.Blkio != "" {
		file = filepath.Join(e.Cgroups.Blkio, group, "blkio.throttle.write_bps_device")
		want = fmt.Sprintf("%v 1000000", disk.Number)
	}
	got := run(t, "systemd-run", "--quiet", "--scope", "--unit="+unit,
		"-p", "IOWriteBandwidthMax="+disk.Node+" 1M", "cat", file)
	if got != want {
		t.Errorf("%s has %q, want %q", file, got, want)
	}
}
