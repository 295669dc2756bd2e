package prove

import (
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/targets"
)

// A Request says what to prove.
type Request struct {
	// Target is measured inside its group, under its current limits. nil: weir measures in groups
	// of its own, under the limits Asked.
	Target *targets.Target
	// Asked are limits of groups that weir makes, each in a directory. One without a place is
	// measured on a scratch disk, whose file is in Scratch.
	Asked   []limit.Asked
	Scratch string
	Hold    limit.Hold       // of buffered writes in groups that weir makes; empty: limit.HoldAuto
	Version cgroupfs.Version // of those groups; 0: either
	// Dirs are directories of the target to measure in; none: weir looks among its mounts.
	Dirs []string
	// Observe measures the target's own I/O for so long, and makes no load; 0: it makes loads.
	Observe time.Duration
	// Neighbour measures what another process gets of the disk, without and with the limit.
	Neighbour bool

	Paths  []load.Path   // the kinds of I/O to try
	Window time.Duration // for each row
	// Short cuts rows so that a person waits for no longer than half a minute.
	Short bool
	// All measures all rows, and not only those that tell the most: see Choose.
	All bool
}
