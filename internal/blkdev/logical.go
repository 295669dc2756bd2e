package blkdev

import (
	"fmt"
	"strconv"
)

// LogicalBlock returns the smallest number of bytes that a whole device reads or
// writes (queue/logical_block_size, Documentation/ABI/stable/sysfs-block): what direct
// I/O is a multiple of.
func (fs FS) LogicalBlock(n Number) (int, error) {
	text, err := fs.attr("/sys/dev/block/" + n.String() + "/queue/logical_block_size")
	if err != nil {
		return 0, fmt.Errorf("read block size of device %s: %w", n, err)
	}
	size, err := strconv.Atoi(text)
	if err != nil || size <= 0 {
		return 0, fmt.Errorf("read block size of device %s: %q is no size", n, text)
	}
	return size, nil
}

// MountsOf lists the mounts of a process (pid 0: of this one) that are of the same file
// system as m, m included.
func (fs FS) MountsOf(pid int, m Mount) ([]Mount, error) {
	return fs.mounts(pid, func(other Mount) (want, stop bool) { return other.Number == m.Number, false })
}
