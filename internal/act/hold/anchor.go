package hold

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// strayKind is the kind of records of processes that an anchor may have made systemd move.
const strayKind = "strays"

// An AnchorError says that systemd may still remove a limit: on v1 by moving processes out of
// groups, on v2 by disabling the io controller.
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

// Anchor prevents systemd from doing so until the next boot (see systemd.Conn.Anchor). On v2
// systemd keeps the io controller enabled for the groups of a slice. On v1 it leaves the
// processes of the slice, and of those beside and above it, where they are in the blkio
// hierarchy. Starting the anchor makes systemd move those once more. Anchor puts processes of
// groups that are not units' back; if weir is killed before, the next weir does that.
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
	// From here on an interrupt has to wait for some milliseconds: processes are outside of
	// their limits.
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

// IsAnchored reports whether a slice has an anchor, by the anchor's group.
func IsAnchored(io *cgroupfs.Hierarchy, slice string) bool {
	g, err := io.Group(systemd.SlicePath(systemd.AnchorOf(slice)))
	if err != nil {
		return false
	}
	there, err := g.Exists()
	return err == nil && there
}

// putBack moves processes back that anchors of killed weirs made systemd move.
func putBack(dir state.Dir, fs *cgroupfs.FS) error {
	return state.Sweep(dir, strayKind, func(all strays) error {
		io, err := fs.IO(cgroupfs.V1)
		if err != nil {
			return err
		}
		return all.restore(io)
	})
}
