package host

import (
	"context"
	"errors"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/why"
)

// owners is what reads the owners of inodes, opened once. That takes part of a second.
type owners struct {
	reader *inode.Asker
	err    error
}

func (o *owners) close() error {
	reader := o.reader
	*o = owners{}
	if reader == nil {
		return nil
	}
	return reader.Close()
}

// Owners starts what reads the owners of inodes, once. It tells to which group the kernel charges the
// writeback of a file.
func (h *Host) Owners() (*inode.Asker, error) {
	if h.owners.reader == nil && h.owners.err == nil {
		h.owners.reader, h.owners.err = inode.Ask(h.FS, h.Helpers)
	}
	return h.owners.reader, h.owners.err
}

// WhySources are where package why reads its facts. A host without a controller of disk I/O is a
// finding, and no error. Who keeps limits for a target (Kept) is not filled in: that is known
// above this package.
func (h *Host) WhySources() (why.Sources, error) {
	io, err := h.IO()
	var none *fault.Unsupported
	if err != nil && !errors.As(err, &none) {
		return why.Sources{}, err
	}
	s := why.Sources{Root: h.Root, Groups: h.FS, Hierarchy: io, WhyNone: err, SystemdRuns: h.SystemdRuns(), Pacer: h.Deciding(), Unpack: h.unpack(),
		Owners: func() (why.Owners, error) {
			reader, err := h.Owners()
			if err != nil {
				return nil, err // not a nil reader in a non-nil interface
			}
			return reader, nil
		}}
	if s.SystemdRuns && h.IsOwn() {
		s.UnitLimits = h.unitLimits
	}
	return s, nil
}

// unitLimits asks systemd for the limits that it keeps for a unit, by the device whose rule it
// writes. An entry stands for two devices if its version decides which of them that is.
func (h *Host) unitLimits(ctx context.Context, unit string) (map[blkdev.Number][]why.Spelling, error) {
	conn, err := h.Systemd(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	entries, err := conn.IOLimits(ctx, unit)
	if err != nil {
		return nil, err
	}
	kept := map[blkdev.Number][]why.Spelling{}
	for _, e := range entries {
		for _, dev := range e.Ends() {
			kept[dev] = append(kept[dev], why.Spelling{Path: e.Path, Limit: e.Limit})
		}
	}
	return kept, nil
}

// unpack reads what gzip has packed; nil: this program cannot.
func (h *Host) unpack() kernel.Unpack {
	if h.Helpers.Missing() != nil {
		return nil
	}
	return kernel.ByHelper(context.Background(), h.Helpers)
}
