package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// A damaged record ends no wait for the group of another one.
func TestADamagedRecordEndsNoSweep(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{cgrouptest.V2Dir + "/weir-1/cgroup.procs": "1\n",
		cgrouptest.V2Dir + "/weir-2/cgroup.procs": ""})
	t.Setenv("XDG_RUNTIME_DIR", "/run") // for callers other than root
	dir := state.At(t.TempDir())
	record := filepath.Join(dir.Path(), "run.1.json")
	if err := errors.Join(os.MkdirAll(dir.Path(), 0o700), os.WriteFile(filepath.Join(dir.Path(), "run.0.json"), []byte(`"x"`), 0o600),
		os.WriteFile(record, []byte(`[{"controller":"io","version":2,"path":"/weir-1"}]`), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := SweepUntilEmpty(ctx, dir, h.FS, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended while the group had processes: %v", err)
	}
	before, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := (Host{FS: h.FS, State: dir}).vacate(before, h.Group("/weir-2")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it keeps a room of a name that is wanted from being waited for: %v", err)
	}
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	if err := SweepUntilEmpty(t.Context(), dir, h.FS, time.Millisecond); !state.IsDamaged(err) {
		t.Errorf("nothing tells of the damaged record: %v", err)
	}
}
