package latency

import (
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
)

// A Report is all runs of an experiment, with what they were done on.
type Report struct {
	Kernel  string // its release
	Dir     string
	Chain   blkdev.Chain // from Dir to its device
	Version cgroupfs.Version
	Size    uint64         // of the file, bytes
	Memory  uint64         // the limit of the runs that have one, bytes
	Places  []place.Placed // the limits of all runs; none: none was asked for
	Runs    []Run
}
