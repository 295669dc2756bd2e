package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// Memory is the memory that a group may have, page cache included, and the part of it that
// waits to be written (memory.max, memory.high, memory.stat; on v1 memory.limit_in_bytes).
type Memory struct {
	Max  uint64 // bytes; 0: no bound
	High uint64 // bytes, from where on the group's tasks are slowed down; 0: none, and always on v1
	// Dirty is the size of the group's file pages that are dirty or in writeback. It includes
	// child groups, on v1 too.
	Dirty uint64
	// Writeback is the part of Dirty that is in writeback.
	Writeback uint64
	// Clean is the size of other file pages, which the kernel drops when the group needs
	// memory. It includes pages that programs have mapped.
	Clean uint64
}

// unboundV1 is where v1's "no limit", the largest number of whole pages, begins.
const unboundV1 = math.MaxInt64 - 1<<20

// Memory reads the group's bounds. There is false if the memory controller is not
// enabled for the group, or it is the root, which has none.
func (g Group) Memory() (m Memory, there bool, err error) {
	text, err := g.read(g.memoryFile())
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	if m.Max, err = bound(text); err != nil {
		return m, false, err
	}
	if g.h.Version == V2 {
		if text, err = g.read("memory.high"); err != nil {
			return m, false, err
		}
		if m.High, err = bound(text); err != nil {
			return m, false, err
		}
	}
	text, err = g.read("memory.stat")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, false, err
	}
	err = m.readStat(text)
	return m, err == nil, err
}

// FileDirty reads only what waits to be written of the group's page cache, child groups included,
// as in Memory. There is false if the group has no memory.stat.
func (g Group) FileDirty() (dirty, writeback uint64, there bool, err error) {
	text, there, err := g.Text("memory.stat")
	if !there || err != nil {
		return 0, 0, false, err
	}
	var m Memory
	if err := m.readStat(text); err != nil {
		return 0, 0, false, fmt.Errorf("parse %s: %w", g.File("memory.stat"), err)
	}
	return m.Dirty, m.Writeback, true, nil
}

// readStat takes the sizes of page cache from memory.stat.
func (m *Memory) readStat(text string) error {
	var files uint64 // in pages that can be dropped once they are clean
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		var sum *uint64
		switch name {
		case "file_dirty", "file_writeback", "total_dirty", "total_writeback":
			sum = &m.Dirty
		case "active_file", "inactive_file", "total_active_file", "total_inactive_file":
			sum = &files
		default:
			continue
		}
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			return err
		}
		*sum += n
		if strings.HasSuffix(name, "_writeback") {
			m.Writeback += n
		}
	}
	m.Clean = files - min(files, m.Dirty)
	return nil
}

// MemoryUsed is the memory that the group and its child groups use now, page cache included
// (memory.current; on v1 memory.usage_in_bytes).
func (g Group) MemoryUsed() (uint64, error) {
	name := "memory.current"
	if g.h.Version == V1 {
		name = "memory.usage_in_bytes"
	}
	text, err := g.read(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(text), 10, 64)
}

// bound reads a number of bytes; 0 stands for none.
func bound(text string) (uint64, error) {
	text = strings.TrimSpace(text)
	if text == "max" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if n >= unboundV1 {
		n = 0
	}
	return n, err
}

// Text reads one of the group's files whole, for what has no reader of its own
// ("io.cost.qos", "io.latency"). There is false if the group has no such file.
func (g Group) Text(name string) (text string, there bool, err error) {
	text, err = g.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return text, err == nil, err
}

// ReadOnly reports whether the hierarchy is mounted read-only.
func (h *Hierarchy) ReadOnly() bool { return h.ro }

// OOMKills is how many processes of the group, or of one below it, the kernel has OOM-killed
// (memory.events; on v1 memory.oom_control, since 4.13).
func (g Group) OOMKills() (n uint64, err error) {
	file := "memory.events"
	if g.h.Version == V1 {
		file = "memory.oom_control"
	}
	text, err := g.read(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return strconv.ParseUint(value, 10, 64)
		}
	}
	return 0, nil
}
