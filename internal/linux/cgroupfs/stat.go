package cgroupfs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Stat is what the controller has charged to a group on one device since the group was made,
// in bytes and in operations. v2 counts a bio when the throttle releases it, v1 before. v1
// counts only devices that ever had a rule in any group.
type Stat struct {
	Device       blkdev.Number `json:"device"`
	ReadBytes    uint64        `json:"read_bytes"`
	WrittenBytes uint64        `json:"written_bytes"`
	Reads        uint64        `json:"reads"`
	Writes       uint64        `json:"writes"`
}

// goneDevice is what the kernel prints for a disk that was removed while in use
// (bdi_dev_name).
const goneDevice = "(unknown)"

// v1's counters.
const (
	bytesFileV1 = "blkio.throttle.io_service_bytes"
	opsFileV1   = "blkio.throttle.io_serviced"
)

// Stats reads the group's counters: v2's io.stat, which includes the groups below,
// or v1's blkio.throttle.io_service_bytes and io_serviced, which do not.
func (g Group) Stats() ([]Stat, error) {
	if g.h.Version == V2 {
		return g.stats("io.stat", parseStatV2)
	}
	bytes, err := g.stats(bytesFileV1, parseBytesV1)
	if err != nil || len(bytes) == 0 {
		return bytes, err
	}
	return g.stats(opsFileV1, func(text string) ([]Stat, error) {
		return parseStatV1(bytes, text, func(s *Stat) (read, write *uint64) { return &s.Reads, &s.Writes })
	})
}

func (g Group) stats(file string, parse func(string) ([]Stat, error)) ([]Stat, error) {
	text, err := g.read(file)
	if err != nil {
		return nil, err
	}
	stats, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", g.File(file), err)
	}
	return stats, nil
}

// parseStatV2 reads io.stat: "8:0 rbytes=… wbytes=… rios=… wios=… dbytes=… dios=…".
// Some kernels print devices without counters, and without a line break, before
// the next device; and cost and latency keys follow where those are on.
func parseStatV2(text string) ([]Stat, error) {
	var stats []Stat
	for line := range strings.Lines(text) {
		var s Stat
		counted, gone := false, false
		for field := range strings.FieldsSeq(line) {
			name, value, ok := strings.Cut(field, "=")
			if !ok {
				if counted {
					stats = append(stats, s)
				}
				counted, gone = false, field == goneDevice
				if gone {
					continue
				}
				dev, err := blkdev.ParseNumber(field)
				if err != nil {
					return nil, err
				}
				s = Stat{Device: dev}
				continue
			}
			counter := s.counterV2(name)
			if counter == nil || gone {
				continue
			}
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%q: not a count", field)
			}
			*counter, counted = n, true
		}
		if counted {
			stats = append(stats, s)
		}
	}
	return stats, nil
}

func (s *Stat) counterV2(name string) *uint64 {
	switch name {
	case "rbytes":
		return &s.ReadBytes
	case "wbytes":
		return &s.WrittenBytes
	case "rios":
		return &s.Reads
	case "wios":
		return &s.Writes
	}
	return nil
}

// parseBytesV1 reads the file of bytes.
func parseBytesV1(text string) ([]Stat, error) {
	return parseStatV1(nil, text, func(s *Stat) (read, write *uint64) { return &s.ReadBytes, &s.WrittenBytes })
}

// parseStatV1 adds one file to stats: "8:0 Read 4096", "8:0 Write 0", "8:0 Sync …",
// and a last line "Total 4096" for all devices.
func parseStatV1(stats []Stat, text string, counters func(*Stat) (read, write *uint64)) ([]Stat, error) {
	for line := range strings.Lines(text) {
		var fields [3]string
		n := 0 // fields of the line
		for field := range strings.FieldsSeq(line) {
			if n < len(fields) {
				fields[n] = field
			}
			n++
		}
		if n == 0 || fields[0] == "Total" || fields[0] == goneDevice {
			continue
		}
		if n != len(fields) {
			return nil, fmt.Errorf("%q: not DEVICE OPERATION COUNT", line)
		}
		if fields[1] != "Read" && fields[1] != "Write" {
			continue
		}
		dev, err := blkdev.ParseNumber(fields[0])
		if err != nil {
			return nil, err
		}
		count, err := strconv.ParseUint(fields[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q: not a count", line)
		}
		i := indexOfDevice(stats, dev)
		if i < 0 {
			i = len(stats)
			stats = append(stats, Stat{Device: dev})
		}
		read, write := counters(&stats[i])
		if fields[1] == "Read" {
			*read = count
		} else {
			*write = count
		}
	}
	return stats, nil
}

func indexOfDevice(stats []Stat, dev blkdev.Number) int {
	for i := range stats {
		if stats[i].Device == dev {
			return i
		}
	}
	return -1
}
