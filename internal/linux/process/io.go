package process

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// IO is what a process has done since it began, with its threads and with the children
// that it has waited for (proc_pid_io(5)), in bytes but for SysCW. The fields are named as in
// /proc/PID/io.
type IO struct {
	RChar               uint64 // that read(2) and its like were asked for, of any file, pipe or socket
	ReadBytes           uint64 // that storage was to read
	WriteBytes          uint64 // that storage is to write: pages made dirty, and direct I/O
	CancelledWriteBytes uint64 // of that, dirty pages that were cut off a file
	WChar               uint64 // that write(2) and its like have written, to any file, pipe or socket
	SysCW               uint64 // of those, how many there were
}

// Plus adds up.
func (a IO) Plus(b IO) IO {
	return IO{a.RChar + b.RChar, a.ReadBytes + b.ReadBytes, a.WriteBytes + b.WriteBytes, a.CancelledWriteBytes + b.CancelledWriteBytes,
		a.WChar + b.WChar, a.SysCW + b.SysCW}
}

// Minus subtracts; what would be less than nothing is nothing.
func (a IO) Minus(b IO) IO {
	return IO{less(a.RChar, b.RChar), less(a.ReadBytes, b.ReadBytes), less(a.WriteBytes, b.WriteBytes), less(a.CancelledWriteBytes, b.CancelledWriteBytes),
		less(a.WChar, b.WChar), less(a.SysCW, b.SysCW)}
}

// withCalls is what a process had done by its end, where before is what it had done at the last look.
// The kernel does not tell how many calls it has made since: they count as calls of a page each.
func (a IO) withCalls(before IO) IO {
	const page = 4096
	last := IO{RChar: max(a.RChar, before.RChar), ReadBytes: max(a.ReadBytes, before.ReadBytes), WriteBytes: max(a.WriteBytes, before.WriteBytes),
		CancelledWriteBytes: max(a.CancelledWriteBytes, before.CancelledWriteBytes), WChar: max(a.WChar, before.WChar)}
	last.SysCW = before.SysCW + (last.WChar-before.WChar+page-1)/page
	return last
}

func less(a, b uint64) uint64 { return max(a, b) - b }

// A File is a process's /proc/PID/io. It stays that process's when the number is given
// again; reading it costs a third of what opening it does.
type File struct {
	fd   int
	name string
	buf  []byte // one for each look would be heap that is touched for the first time
}

// ioMost is more than the file has.
const ioMost = 512

// Open opens the file of a process. Another user's takes the right to trace it.
func Open(pid int) (Counter, error) {
	name := "/proc/" + strconv.Itoa(pid) + "/io"
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &File{fd, name, make([]byte, ioMost)}, nil
}

// IO reads the counts. That the process has been waited for is an error.
func (f *File) IO() (IO, error) {
	n, err := unix.Pread(f.fd, f.buf, 0)
	if err != nil {
		return IO{}, &fs.PathError{Op: "read", Path: f.name, Err: err}
	}
	var io IO
	for line := range bytes.Lines(f.buf[:n]) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		var into *uint64
		switch string(key) {
		case "rchar":
			into = &io.RChar
		case "read_bytes":
			into = &io.ReadBytes
		case "write_bytes":
			into = &io.WriteBytes
		case "cancelled_write_bytes":
			into = &io.CancelledWriteBytes
		case "wchar":
			into = &io.WChar
		case "syscw":
			into = &io.SysCW
		default:
			continue
		}
		if *into, err = strconv.ParseUint(string(value), 10, 64); err != nil {
			return IO{}, fmt.Errorf("parse %s: %q", f.name, line)
		}
	}
	return io, nil
}

// Close closes the file.
func (f *File) Close() error { return unix.Close(f.fd) }
