package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// SweepArg is the argument that makes weir wait until the groups of dead weirs are empty, and
// remove them.
const SweepArg = "__sweep"

// SweepLater starts a weir in the background that removes groups which still have processes,
// once these have ended.
func SweepLater() error {
	cmd := background.Command(SweepArg)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("watch for the end of the group: %w", err)
	}
	return cmd.Process.Release()
}

// SweepUntilEmpty sweeps until no record of a dead weir is left. A damaged record is no group's, and
// keeps it from no other.
func SweepUntilEmpty(ctx context.Context, dir state.Dir, hierarchies *cgroupfs.FS, every time.Duration) error {
	for {
		if err := Sweep(dir, hierarchies); err != nil && !state.IsDamaged(err) {
			return err
		}
		kept := false
		if err := state.Sweep(dir, recordKind, func([]place) error {
			kept = true
			return state.ErrKeep
		}); err != nil && !state.IsDamaged(err) || !kept {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}
