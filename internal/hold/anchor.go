package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/systemd"
)

// strayKind names the records of what an anchor may have had systemd move.
const strayKind = "strays"

// An AnchorError says that systemd may still take a limit out of force: on v1 by moving
// processes out of groups, on v2 with the io controller.
type AnchorError struct {
	Slice   string
	Version cgroupfs.Version
	Err     error
}

func (e *AnchorError) Error() string {
	what := "leave processes of %s in their groups"
	if e.Version == cgroupfs.V2 {
		what = "leave groups in %s the io controller"
	}
	return fmt.Sprintf("have systemd "+what+": %v", e.Slice, e.Err)
}

func (e *AnchorError) Unwrap() error { return e.Err }

// Anchor has systemd leave the groups of a slice the io controller (v2), or the processes
// of a slice, and of those beside and above it, where they are in v1's hierarchy of disk
// I/O, until the next boot (see systemd.Conn.Anchor). To get there it moves the latter once
// more. Those in groups that are no unit's, which others have made, are put back; if weir
// is killed before, by the next one.
func (h Holder) Anchor(ctx context.Context, io *cgroupfs.Hierarchy, slice string) error {
	if io.Version == cgroupfs.V1 && IsAnchored(io, slice) {
		return nil
	}
	conn, err := h.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if io.Version == cgroupfs.V2 {
		ctx, cancel := context.WithTimeout(ctx, unitTimeout)
		defer cancel()
		return conn.Anchor(ctx, slice, accounting(io.Version))
	}
	all, err := findStrays(io)
	if err != nil {
		return err
	}
	record, err := h.State.New(strayKind, all)
	if err != nil {
		return err
	}
	// From here on an interrupt has to wait: some milliseconds, while processes are where
	// their limits are not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unitTimeout)
	defer cancel()
	err = conn.Anchor(ctx, slice, accounting(io.Version))
	return finish(record, errors.Join(err, all.restore(io)))
}

// AnchorSteps lists what Anchor does.
func AnchorSteps(io *cgroupfs.Hierarchy, slice string) []Step {
	if IsAnchored(io, slice) {
		return nil
	}
	return []Step{{Unit: systemd.AnchorOf(slice), Property: accounting(io.Version).String()}}
}

// IsAnchored reports whether a slice has an anchor: whether that has its group.
func IsAnchored(io *cgroupfs.Hierarchy, slice string) bool {
	g, err := io.Group(systemd.SlicePath(systemd.AnchorOf(slice)))
	if err != nil {
		return false
	}
	there, err := g.Exists()
	return err == nil && there
}

// putBack puts back what anchors of killed weirs have had systemd move.
func putBack(dir state.Dir, fs *cgroupfs.FS) error {
	return dir.Sweep(strayKind, func(data []byte) error {
		var all strays
		if err := json.Unmarshal(data, &all); err != nil {
			return fmt.Errorf("read record of moved processes: %w", err)
		}
		io, err := fs.IO(cgroupfs.V1)
		if err != nil {
			return err
		}
		return all.restore(io)
	})
}
