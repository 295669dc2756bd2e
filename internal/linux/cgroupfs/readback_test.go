package cgroupfs

import (
	"errors"
	"testing"

	"github.com/weir-io/weir/internal/limit"
)

// A plain file keeps what is written to it, byte for byte, which for these files is not
// what the kernel would keep.
func v2Plain(t *testing.T, fs *FS) *FS {
	t.Helper()
	for _, h := range fs.all {
		h.fake = false
	}
	return fs
}

// Only what was named is read back, but an error tells of all rates.
func TestSetRuleReadsBack(t *testing.T) {
	files := map[string]string{"x/blkio.throttle.write_bps_device": "8:0 5\n8:0 9\n"} // which no kernel has: the second line stays
	named := limit.Limit{WBPS: limit.PerSecond(4)}
	if err := groupOf(t, v2Plain(t, v1(t, files)), "/x").SetRule(number("8:0"), named.With(limit.WBPS, limit.PerSecond(9))); err != nil {
		t.Errorf("SetRule of what is kept: %v", err)
	}
	for _, rate := range []string{"read_bps", "read_iops", "write_iops"} {
		files["x/blkio.throttle."+rate+"_device"] = ""
	}
	files["x/blkio.throttle.read_bps_device"] = "8:0 3\n"
	var kept *WriteError
	err := groupOf(t, v2Plain(t, v1(t, files)), "/x").SetRule(number("8:0"), named)
	if !errors.As(err, &kept) || kept.Kept != "8:0 rbps=3 wbps=9 riops=max wiops=max" {
		t.Errorf("SetRule where the kernel keeps another: %v; want a *WriteError", err)
	}
}

func TestEnableReadsBack(t *testing.T) {
	fs := v2Plain(t, v2(t, map[string]string{"cgroup.subtree_control": "io\n", "x/cgroup.procs": ""}))
	if err := groupOf(t, fs, "/x").Enable("io"); err != nil {
		t.Errorf("Enable of what is enabled: %v", err)
	}
	var kept *WriteError
	err := groupOf(t, fs, "/x").Enable("io", "memory")
	if !errors.As(err, &kept) || kept.Line != "+memory" || kept.Kept != "+memory" {
		t.Errorf("Enable where the kernel does not list memory: %v; want a *WriteError", err)
	}
}

func TestSetMemoryMaxReadsBack(t *testing.T) {
	fs := v2Plain(t, v2(t, map[string]string{"x/memory.max": ""}))
	g := groupOf(t, fs, "/x")
	if err := g.SetMemoryMax(64 << 20); err != nil {
		t.Errorf("SetMemoryMax: %v", err)
	}
	var kept *WriteError
	if err := g.SetMemoryMax(64<<20 + 1); !errors.As(err, &kept) || kept.Kept != "67108865" {
		t.Errorf("SetMemoryMax where the kernel keeps no whole page: %v; want a *WriteError", err)
	}
}
