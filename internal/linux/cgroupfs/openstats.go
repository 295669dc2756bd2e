package cgroupfs

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// OpenStats is an open counter file of a group, for reading many times a second: opening the
// file takes as long as the kernel's answer. (This does not help v1's lists of processes: the
// kernel makes a list when the file is opened, and keeps it for a second;
// kernel/cgroup/cgroup-v1.c.)
type OpenStats struct {
	of   Group
	file string
	fd   int
}

// rooms are what files are read into: one each would be 4 KiB for every group that is watched.
var rooms = sync.Pool{New: func() any {
	room := make([]byte, pageSize)
	return &room
}}

func (g Group) openOften(name string) (*OpenStats, error) {
	fd, err := g.h.open(path.Join(g.path, name), unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return &OpenStats{of: g, file: name, fd: fd}, nil
}

// name is the path of the file, for errors: thousands of files are open, and few have any.
func (f *OpenStats) name() string { return f.of.File(f.file) }

// OpenStats opens the group's counters of bytes, for Bytes.
func (g Group) OpenStats() (*OpenStats, error) {
	if g.h.Version == V2 {
		return g.openOften("io.stat")
	}
	return g.openOften(bytesFileV1)
}

// OpenSum opens what v1 has counted of the group and of all groups below it, for Sum. Kernels that do
// not add that up have no such file.
func (g Group) OpenSum() (*OpenStats, error) { return g.openOften(bytesFileV1 + "_recursive") }

// Sum reads that sum, in bytes, as Counters.TotalV1 has it. The kernel counts each group below on each
// processor for that, with interrupts off (blkg_rwstat_recursive_sum in block/blk-cgroup-rwstat.c):
// about 0.5 µs a group.
func (f *OpenStats) Sum() (bytes uint64, known bool, err error) {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	text, err := f.text(room)
	if err != nil {
		return 0, false, err
	}
	bytes, known = totalV1(text)
	return bytes, known, nil
}

// totalV1 reads the last line of one of v1's counters, "Total 4096".
func totalV1(text []byte) (total uint64, known bool) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	digits, is := bytes.CutPrefix(last, []byte("Total "))
	if !is || len(digits) == 0 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' || total > (math.MaxUint64-9)/10 {
			return 0, false
		}
		total = 10*total + uint64(d-'0')
	}
	return total, true
}

// pageSize is the least that the kernel returns at once, if there is that much (seq_read_iter).
// Records are far shorter than half of it.
const pageSize = 4096

// text reads the whole file into a room, which grows if it has to.
func (f *OpenStats) text(room *[]byte) ([]byte, error) {
	for n := 0; n < fileMax; {
		if len(*room)-n < pageSize {
			*room = append(*room, make([]byte, len(*room))...)
		}
		more, err := unix.Pread(f.fd, (*room)[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: f.name(), Err: err}
		}
		if n += more; more < pageSize/2 {
			return (*room)[:n], nil
		}
	}
	return nil, fmt.Errorf("read %s: longer than %d bytes", f.name(), fileMax)
}

// Bytes reads the counters of bytes; those of operations are 0 on v1.
func (f *OpenStats) Bytes() ([]Stat, error) {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	text, err := f.text(room)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	parse := parseStatV2
	if f.of.h.Version == V1 {
		parse = parseBytesV1
	}
	stats, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", f.name(), err)
	}
	return stats, nil
}

// Close closes the file.
func (f *OpenStats) Close() error { return unix.Close(f.fd) }
