package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/state"
)

// A Store has the volumes of this host.
type Store struct {
	Dir     string // where volumes are, unless another place is named
	State   state.Dir
	Holder  hold.Holder
	Devices blkdev.FS
	Kernel  kernel.FS
	// IO is the hierarchy that limits are set in. If it is nil, WhyNone says why, and volumes
	// have no limits.
	IO      *cgroupfs.Hierarchy
	WhyNone error
	// Undo takes back what a weir that was killed had half set.
	Undo func() error

	standIn machine // stands in for the machine in tests; nil: that which weir runs on
}

// hasRootRules reports whether the root group can have rules.
func (s Store) hasRootRules() bool { return s.IO != nil && s.IO.Version == cgroupfs.V1 }

// mayLimit refuses a limit where none can be.
func (s Store) mayLimit(l limit.Limit) error {
	if l.Bounds() && s.IO == nil {
		return s.WhyNone
	}
	return nil
}

// lock waits until no other weir changes volumes, and takes what a dead one left half done to
// its end. What of that cannot be, Sweep has said; it concerns its own volume only.
func (s Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := (state.Folder{Dir: s.Dir, Mode: 0o711}).Make(); err != nil {
		return nil, fmt.Errorf("record volumes: %w", err)
	}
	lock, err := s.store().Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	_ = s.Undo() // which has been said, too
	_ = s.recover()
	return lock.Unlock, nil
}

// take locks volumes and finds one.
func (s Store) take(ctx context.Context, name string) (v Volume, unlock func(), err error) {
	if unlock, err = s.lock(ctx); err != nil {
		return v, nil, err
	}
	if v, err = s.Find(name); err != nil {
		unlock()
	}
	return v, unlock, err
}

// Sweep takes what dead weirs left half done to its end. What a living one is at it leaves
// alone.
func (s Store) Sweep() error {
	if os.Geteuid() != 0 {
		return nil
	}
	entries, err := os.ReadDir(s.records())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	unfinished := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !isReady(e.Name()) })
	if !unfinished {
		return s.sweepLoops()
	}
	lock, err := s.store().TryLock()
	if errors.Is(err, state.ErrLocked) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("volumes: %w", err)
	}
	defer lock.Unlock()
	return s.recover()
}
