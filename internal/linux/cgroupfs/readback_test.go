package cgroupfs

import (
	"errors"
	"testing"
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
