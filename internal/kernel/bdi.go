package kernel

import (
	"github.com/weir-io/weir/internal/blkdev"
)

// A BDI is the bound on what may be dirty for one device, or for a file system without
// one (sysfs-class-bdi).
type BDI struct {
	Dir         string // /sys/class/bdi/MAJ:MIN
	Strict      bool   // the bound holds below the host's threshold too, in each group
	MaxBytes    uint64 // its share of the host's threshold, or what was written there
	CanBeStrict bool   // the kernel has the two (6.2)
}

// BDI reads the bounds of a device. There is false if the device has none: a
// partition, or a device that is not there.
func (f FS) BDI(dev blkdev.Number) (b BDI, there bool, err error) {
	b.Dir = "/sys/class/bdi/" + dev.String()
	if _, there, err = f.number(b.Dir + "/max_ratio"); err != nil || !there {
		return b, false, err
	}
	strict, has, err := f.number(b.Dir + "/strict_limit")
	if err != nil {
		return b, false, err
	}
	b.Strict = strict == 1
	max, hasMax, err := f.number(b.Dir + "/max_bytes")
	if err != nil {
		return b, false, err
	}
	b.CanBeStrict = has && hasMax
	b.MaxBytes = max
	return b, true, nil
}

// A Queue is what a device's queue takes and who shares it out (sysfs-block, queue/).
type Queue struct {
	Dir        string // /sys/dev/block/MAJ:MIN/queue
	MaxSectors uint64 // bytes of the largest request (max_sectors_kb); 0: not known
	Rotational bool
}

// Queue reads a device's queue.
func (f FS) Queue(dev blkdev.Number) (Queue, error) {
	q := Queue{Dir: "/sys/dev/block/" + dev.String() + "/queue"}
	kb, _, err := f.number(q.Dir + "/max_sectors_kb")
	if err != nil {
		return q, err
	}
	q.MaxSectors = kb << 10
	rotational, _, err := f.number(q.Dir + "/rotational")
	if err != nil {
		return q, err
	}
	q.Rotational = rotational == 1
	return q, nil
}
