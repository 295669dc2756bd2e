package load

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Timing is one write.
type Timing struct {
	At   int64         // its beginning, CLOCK_MONOTONIC, ns
	Took time.Duration // until it returned
}

// A Log is memory that two processes share: one adds timings, the other reads them meanwhile.
// It has a fixed length. Its maker touches all of its pages at the start, so that they are not
// charged to the group of the process that adds.
type Log struct {
	file    *os.File
	memory  []byte
	count   *atomic.Uint64
	timings []Timing
}

// logHead is what the count has for itself: a cache line.
const logHead = 64

// NewLog makes a log of a length in memory without a name (memfd_create(2)).
func NewLog(length int) (*Log, error) {
	fd, err := unix.MemfdCreate("weir-log", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a log of writes: %w", err)
	}
	file := os.NewFile(uintptr(fd), "log of writes")
	if err := file.Truncate(logHead + int64(length)*int64(unsafe.Sizeof(Timing{}))); err != nil {
		_ = file.Close() // nothing is in it
		return nil, fmt.Errorf("make a log of writes: %w", err)
	}
	return OpenLog(file)
}

// OpenLog maps a log that NewLog has made, and takes the file over.
func OpenLog(file *os.File) (*Log, error) {
	info, err := file.Stat()
	if err == nil && info.Size() < logHead {
		err = fmt.Errorf("%d bytes are no log", info.Size())
	}
	var memory []byte
	if err == nil {
		memory, err = unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	}
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("map a log of writes: %w", err)
	}
	l := &Log{file: file, memory: memory, count: (*atomic.Uint64)(unsafe.Pointer(&memory[0]))}
	if length := (len(memory) - logHead) / int(unsafe.Sizeof(Timing{})); length > 0 {
		l.timings = unsafe.Slice((*Timing)(unsafe.Pointer(&memory[logHead])), length)
	}
	return l, nil
}

// File is the log's, for a process that inherits it.
func (l *Log) File() *os.File { return l.file }

// Add adds a timing; one that there is no place for is dropped.
func (l *Log) Add(t Timing) {
	n := l.count.Load()
	if n >= uint64(len(l.timings)) {
		return
	}
	l.timings[n] = t
	l.count.Store(n + 1)
}

// Len is how many there are.
func (l *Log) Len() int { return int(min(l.count.Load(), uint64(len(l.timings)))) }

// Timings copies those that are there.
func (l *Log) Timings() []Timing { return append([]Timing{}, l.timings[:l.Len()]...) }

// Close gives the memory back. Timings that were copied stay.
func (l *Log) Close() error {
	err := unix.Munmap(l.memory)
	if closing := l.file.Close(); err == nil {
		err = closing
	}
	return err
}
