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
	more  []byte     // what ops had then
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
	same := c.known && bytes.Equal(text, c.text)
	if same && (!all || c.ops == nil || len(c.stats) == 0) {
		return c.stats, false, nil
	}
	was := c.known
	c.known = false                      // until all is read
	c.text = append(c.text[:0], text...) // the room is used again
	if c.ops != nil {
		other, err := c.readMore(room)
		if err != nil {
			return nil, false, err
		}
		same = same && !other
	}
	if !same { // of thousands of groups most have done nothing, and nothing is parsed of them
		if stats, err = c.parse(); err != nil {
			return nil, false, err
		}
		changed = !was || !slices.Equal(stats, c.stats)
	}
	if c.known = true; changed {
		c.stats = stats
	}
	return c.stats, changed, nil
}

// ReadOps is Read of all where the bytes are known to be those of the last reading, as a sum of v1 tells. On v2 it is Read.
func (c *Counters) ReadOps() (stats []Stat, err error) {
	if !c.known || c.ops == nil {
		all, _, err := c.Read(true)
		return all, err
	}
	if len(c.stats) == 0 { // the group never did any I/O
		return c.stats, nil
	}
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	other, err := c.readMore(room)
	if err == nil && other {
		stats, err = c.parse()
	}
	if c.known = err == nil; err != nil {
		return nil, err
	}
	if other && !slices.Equal(stats, c.stats) {
		c.stats = stats
	}
	return c.stats, nil
}

// readMore reads v1's operations, and reports whether they are others than before.
func (c *Counters) readMore(room *[]byte) (other bool, err error) {
	text, err := c.ops.text(room)
	if err != nil || bytes.Equal(text, c.more) {
		return false, err
	}
	c.more = append(c.more[:0], text...)
	return true, nil
}

// parse parses what was read.
func (c *Counters) parse() (stats []Stat, err error) {
	if c.ops == nil {
		stats, err = parseStatV2(string(c.text))
	} else {
		stats, err = parseBytesV1(string(c.text))
	}
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", c.main.name(), err)
	}
	if c.ops == nil || len(stats) == 0 {
		return stats, nil
	}
	stats, err = parseStatV1(stats, string(c.more), func(s *Stat) (read, write *uint64) { return &s.Reads, &s.Writes })
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", c.ops.name(), err)
	}
	return stats, nil
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
