package blkdev

import (
	"fmt"
	"strconv"
	"strings"
)

// Counters are what a device has done since it was made. sysfs counts sectors of 512
// bytes, whatever the device's own are (Documentation/block/stat.rst).
type Counters struct {
	Reads        uint64 `json:"reads"` // operations completed
	ReadBytes    uint64 `json:"read_bytes"`
	Writes       uint64 `json:"writes"`
	WrittenBytes uint64 `json:"written_bytes"`
}

// Counters reads a device's stat file in sysfs (Documentation/ABI/stable/sysfs-block).
func (fs FS) Counters(n Number) (Counters, error) {
	text, err := fs.attr("/sys/dev/block/" + n.String() + "/stat")
	if err != nil {
		return Counters{}, fmt.Errorf("read counters of device %s: %w", n, err)
	}
	fields := strings.Fields(text)
	var c Counters
	for i, counter := range map[int]*uint64{0: &c.Reads, 2: &c.ReadBytes, 4: &c.Writes, 6: &c.WrittenBytes} {
		if i >= len(fields) {
			return Counters{}, fmt.Errorf("read counters of device %s: %q has too few fields", n, text)
		}
		if *counter, err = strconv.ParseUint(fields[i], 10, 64); err != nil {
			return Counters{}, fmt.Errorf("read counters of device %s: %w", n, err)
		}
	}
	c.ReadBytes *= sectorBytes
	c.WrittenBytes *= sectorBytes
	return c, nil
}
