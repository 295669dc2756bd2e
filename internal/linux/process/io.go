package process

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// IO is what a process has done since it began, with its threads and with the children
// that it has waited for (proc_pid_io(5)), in bytes but for Calls.
type IO struct {
	Asked     uint64 // rchar: that read(2) and its like were asked for, of any file, pipe or socket
	Read      uint64 // read_bytes: that storage was to read
	Written   uint64 // write_bytes: that storage is to write: pages made dirty, and direct I/O
	Cancelled uint64 // cancelled_write_bytes: of that, dirty pages that were cut off a file
	Sent      uint64 // wchar: that write(2) and its like have written, to any file, pipe or socket
	Calls     uint64 // syscw: of those, how many there were
}

// Plus adds up.
func (a IO) Plus(b IO) IO {
	return IO{a.Asked + b.Asked, a.Read + b.Read, a.Written + b.Written, a.Cancelled + b.Cancelled,
		a.Sent + b.Sent, a.Calls + b.Calls}
}

// Minus subtracts; what would be less than nothing is nothing.
func (a IO) Minus(b IO) IO {
	return IO{less(a.Asked, b.Asked), less(a.Read, b.Read), less(a.Written, b.Written), less(a.Cancelled, b.Cancelled),
		less(a.Sent, b.Sent), less(a.Calls, b.Calls)}
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
			into = &io.Asked
		case "read_bytes":
			into = &io.Read
		case "write_bytes":
			into = &io.Written
		case "cancelled_write_bytes":
			into = &io.Cancelled
		case "wchar":
			into = &io.Sent
		case "syscw":
			into = &io.Calls
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
