package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A BDI is the bound on what may be dirty for one device, or for a file system without
// one (sysfs-class-bdi).
type BDI struct {
	Dir         string // /sys/class/bdi/MAJ:MIN
	Strict      bool   // the bound holds below the host's threshold too, in each group
	MaxBytes    uint64 // its share of the host's threshold, or what was written there
	CanBeStrict bool   // the kernel has the two (6.2)
}

// BDI reads the bounds of a device. there is false if the device has none: a partition, or a
// device that does not exist.
func (f FS) BDI(dev blkdev.Number) (b BDI, there bool, err error) {
	b.Dir = bdiDir(dev)
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

// A Queue is the limits of a device's queue, and its scheduler (sysfs-block, queue/).
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

// A Line is what is written to a file of sysfs.
type Line struct{ File, Text string }

// Bound has the kernel hold back writers to a device once max bytes wait to be written to it,
// whatever waits elsewhere. The kernel keeps max as a share of what may be dirty on the host
// at the moment, and the bound follows that. A kernel that cannot (before 6.2) is asked for the nearest it has:
// a percent of the host's threshold, which binds only while the host is past half of that.
func (f FS) Bound(dev blkdev.Number, max uint64) (strict bool, err error) {
	b, there, err := f.BDI(dev)
	if err != nil || !there {
		return false, errors.Join(err, errNoBDI(dev, there))
	}
	lines := b.ToBound(max)
	err = f.write(lines[0])
	if b.CanBeStrict && errors.Is(err, unix.EINVAL) { // more than may be dirty on this host altogether
		err = f.write(Line{b.Dir + "/max_ratio_fine", strconv.FormatUint(Unbounded.Fine, 10)})
	}
	if err != nil {
		return false, err
	}
	return b.CanBeStrict, f.write(lines[1:]...)
}

// ToBound is what Bound writes.
func (b BDI) ToBound(max uint64) []Line {
	if !b.CanBeStrict {
		return []Line{{b.Dir + "/max_ratio", "1"}}
	}
	return []Line{{b.Dir + "/max_bytes", strconv.FormatUint(max, 10)}, {b.Dir + "/strict_limit", "1"}}
}

// Unbound gives a device's dirty pages the bounds that Bounds has read.
func (f FS) Unbound(dev blkdev.Number, was Bounds) error {
	b, there, err := f.BDI(dev)
	if err != nil || !there {
		return errors.Join(err, errNoBDI(dev, there))
	}
	return f.write(b.ToUnbound(was)...)
}

// ToUnbound is what Unbound writes.
func (b BDI) ToUnbound(was Bounds) []Line {
	if !b.CanBeStrict {
		return []Line{{b.Dir + "/max_ratio", strconv.FormatUint(was.Percent, 10)}}
	}
	strict := "0"
	if was.Strict {
		strict = "1"
	}
	fine := was.Fine
	if fine == 0 { // as it was read by a kernel that has no such file
		fine = was.Percent * (Unbounded.Fine / 100)
	}
	return []Line{{b.Dir + "/strict_limit", strict}, {b.Dir + "/max_ratio_fine", strconv.FormatUint(fine, 10)}}
}

// NewBDI is what a device that is still to be made will have, as other devices of this kernel.
func (f FS) NewBDI(dev blkdev.Number) (BDI, error) {
	b := BDI{Dir: bdiDir(dev)}
	others, err := filepath.Glob(f.at("/sys/class/bdi/*/strict_limit"))
	b.CanBeStrict = len(others) > 0
	return b, err
}

func bdiDir(dev blkdev.Number) string { return "/sys/class/bdi/" + dev.String() }

// Bounds are a device's bounds as the kernel keeps them: shares of the host's threshold.
type Bounds struct {
	Strict  bool   `json:"strict"`
	Percent uint64 `json:"percent"`
	Fine    uint64 `json:"fine"` // of a million; 0 before Linux 6.2
}

// Unbounded is the default of a device without bounds.
var Unbounded = Bounds{Percent: 100, Fine: 1e6}

// Bounds reads them.
func (f FS) Bounds(dev blkdev.Number) (b Bounds, err error) {
	bdi, there, err := f.BDI(dev)
	if err != nil || !there {
		return b, errors.Join(err, errNoBDI(dev, there))
	}
	b.Strict = bdi.Strict
	if b.Percent, _, err = f.number(bdi.Dir + "/max_ratio"); err != nil {
		return b, err
	}
	b.Fine, _, err = f.number(bdi.Dir + "/max_ratio_fine")
	return b, err
}

func errNoBDI(dev blkdev.Number, there bool) error {
	if there {
		return nil
	}
	return fmt.Errorf("limit the dirty data of device %s: it has no /sys/class/bdi/%s", dev, dev)
}

func (f FS) write(lines ...Line) error {
	for _, l := range lines {
		if err := os.WriteFile(f.at(l.File), []byte(l.Text), 0); err != nil {
			return fmt.Errorf("write %s to %s: %w", l.Text, l.File, err)
		}
	}
	return nil
}
