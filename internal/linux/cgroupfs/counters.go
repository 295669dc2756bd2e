package cgroupfs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Counters are a group's counters, with their files kept open, for reading once a second. One
// read is enough for a group that has done nothing since the last one.
type Counters struct {
	main  *OpenStats // v2's io.stat; v1's counter of bytes
	ops   *OpenStats // v1's counter of operations; nil on v2
	text  []byte     // what main had at the last reading
	stats []Stat
	known bool // there was a reading
}

// OpenCounters opens a group's counters: v2's io.stat, or v1's two files. If the group has no
// counters, or is gone, IsGone is true for the error.
func (g Group) OpenCounters() (*Counters, error) {
	main, err := g.OpenStats()
	if err != nil {
		return nil, err
	}
	c := &Counters{main: main}
	if g.h.Version == V1 {
		if c.ops, err = g.openOften(opsFileV1); err != nil {
			return nil, errors.Join(err, main.Close())
		}
	}
	return c, nil
}

// Read reads the counters as Group.Stats does. Changed is false if they are those of the last
// reading, which the same slice is then returned for; the caller must not change it. On v1 only
// the bytes are looked at for that: operations without bytes (flushes) show up with all, or with
// the next bytes.
func (c *Counters) Read(all bool) (stats []Stat, changed bool, err error) {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	text, err := c.main.text(room)
	if err != nil {
		return nil, false, err
	}
	if c.known && bytes.Equal(text, c.text) && (!all || c.ops == nil) {
		return c.stats, false, nil
	}
	parse := parseStatV2
	if c.ops != nil {
		parse = parseBytesV1
	}
	if stats, err = parse(string(text)); err != nil {
		return nil, false, fmt.Errorf("parse %s: %w", c.main.name(), err)
	}
	c.text = append(c.text[:0], text...) // the room is used again
	was := c.known
	c.known = false // until the rest is read
	if c.ops != nil && len(stats) > 0 {
		ops, err := c.ops.text(room)
		if err != nil {
			return nil, false, err
		}
		stats, err = parseStatV1(stats, string(ops), func(s *Stat) (read, write *uint64) { return &s.Reads, &s.Writes })
		if err != nil {
			return nil, false, fmt.Errorf("parse %s: %w", c.ops.name(), err)
		}
	}
	c.known = true
	if was && slices.Equal(stats, c.stats) {
		return c.stats, false, nil
	}
	c.stats = stats
	return stats, true, nil
}

// TotalV1 is all that v1 has counted at the last reading, in bytes, discards included: the sum over
// all devices that the kernel prints last. Known is false if there is none.
func (c *Counters) TotalV1() (bytes uint64, known bool) { return totalV1(c.text) }

// Files is how many files are open.
func (c *Counters) Files() int {
	if c.ops != nil {
		return 2
	}
	return 1
}

// Close closes the files.
func (c *Counters) Close() error {
	err := c.main.Close()
	if c.ops != nil {
		err = errors.Join(err, c.ops.Close())
	}
	return err
}
