package calibrate

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func TestFactor(t *testing.T) {
	slower := reference
	slower.Call, slower.Append, slower.Start, slower.Compute = 2*slower.Call, 2*slower.Append, 2*slower.Start, 2*slower.Compute
	half := reference
	half.Processors = 1
	beside := reference
	beside.Processors = 1.5
	large := reference
	large.Processors, large.Threads = 7.9, 8
	const memory = 16 << 30
	for _, c := range []struct {
		name         string
		m            Machine
		factor, slow float64
		guests       int
	}{
		{"reference", reference, 1, 1, 2},
		{"half as fast", slower, 0.5, 2, 2},
		{"half of the time", half, 0.5, 2, 1},
		{"a busy loop beside", beside, 0.75, 4.0 / 3, 1},
		{"more processors", large, 1, 1, 8},
	} {
		if f, s, g := c.m.Factor(), c.m.Slow(), c.m.Guests(memory); math.Abs(f-c.factor) > 1e-9 || math.Abs(s-c.slow) > 1e-9 || g != c.guests {
			t.Errorf("%s: factor %.3f, slow %.3f, %d guests; want %.3f, %.3f, %d", c.name, f, s, g, c.factor, c.slow, c.guests)
		}
	}
	if g := large.Guests(5 << 30); g != 2 {
		t.Errorf("with 5 GiB: %d guests", g)
	}
	if g := large.Guests(0); g != 1 {
		t.Errorf("without memory: %d guests", g)
	}
}

// One guest gets the processor that others leave; two get one each, as every run has it.
func TestPlace(t *testing.T) {
	var m Machine
	m.share([]float64{0.5, 0.98})
	if m.Processors != 1.48 || m.Threads != 2 || m.Place(0, 1) != 1 || m.Place(0, 2) != 0 || m.Place(1, 2) != 1 {
		t.Errorf("%+v: places %d, %d, %d", m, m.Place(0, 1), m.Place(0, 2), m.Place(1, 2))
	}
	if m.Spare() {
		t.Error("half a processor is taken, and there is time to spare")
	}
}

func TestMeasure(t *testing.T) {
	m, err := Measure(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(m)
	if m.Call <= 0 || m.Append <= m.Call || m.Start <= m.Append || m.Compute <= 0 || m.Processors <= 0 || m.Processors > 1.05*float64(m.Threads) {
		t.Errorf("%+v", m)
	}
}

// helper has the test binary measure what processors it gets, and do nothing else.
const helper = "WEIR_CALIBRATE_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helper) != "" {
		var m Machine
		m.share(shares(affinity()))
		fmt.Printf("%.3f", m.Processors)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A quota on processor time is seen.
func TestQuotaIsSeen(t *testing.T) {
	group := filepath.Join(cpuHierarchy(t), "weir-calibrate-test")
	if err := os.Mkdir(group, 0o755); err != nil && !os.IsExist(err) {
		t.Skipf("make a group: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) }) // empty: its process has ended
	if err := os.WriteFile(filepath.Join(group, "cpu.cfs_quota_us"), []byte("30000"), 0); err != nil {
		t.Skipf("set a quota: %v", err)
	}
	cmd := exec.Command("sh", "-c", `echo $$ >"$1/cgroup.procs" && exec "$2"`, "sh", group, os.Args[0])
	cmd.Env = append(os.Environ(), helper+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	share, err := strconv.ParseFloat(string(out), 64)
	if err != nil || share > 0.45 { // a period more than that of the quota may have begun
		t.Errorf("with 0.3 of a processor: %q, %v", out, err)
	}
}

// cpuHierarchy is the mount point of v1's cpu controller.
func cpuHierarchy(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"} {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil && os.Geteuid() == 0 {
			return dir
		}
	}
	t.Skip("needs root and cgroup v1's cpu controller: the test sets a quota of processor time")
	return ""
}
