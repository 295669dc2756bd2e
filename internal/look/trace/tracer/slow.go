package tracer

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/trace"
)

// slowMost is how many slow operations are kept: the slowest.
const slowMost = 1000

// A SlowWatch reads slow operations as they come.
type SlowWatch struct {
	reader *ringbuf.Reader
	origin uint64 // CLOCK_MONOTONIC at the trace's beginning, ns
	ended  chan struct{}

	// Owned by the goroutine until it has ended.
	kept  slowest
	count uint64
	paths *paths
	err   error
}

// WatchSlow starts to read slow operations, until Stop or the end of the trace.
func (t *Tracer) WatchSlow() *SlowWatch {
	w := &SlowWatch{reader: t.slows, origin: monotonic() - uint64(time.Since(t.Began)), ended: make(chan struct{}), paths: newPaths()}
	go w.read()
	return w
}

// monotonic is CLOCK_MONOTONIC, which bpf_ktime_get_ns is too, ns.
func monotonic() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return uint64(now.Nano())
}

func (w *SlowWatch) read() {
	defer close(w.ended)
	var record ringbuf.Record
	for {
		switch err := w.reader.ReadInto(&record); {
		case errors.Is(err, ringbuf.ErrFlushed), errors.Is(err, os.ErrClosed):
			return
		case err != nil:
			w.err = fmt.Errorf("read slow operations: %w", err)
			return
		}
		w.add(record.RawSample)
	}
}

// add counts an operation, and keeps it if it is one of the slowest. It examines only what it
// keeps: with a low threshold most is not kept.
func (w *SlowWatch) add(sample []byte) {
	const took = 8 // where slowEvent.Took is
	if len(sample) < binary.Size(slowEvent{}) {
		return
	}
	w.count++
	if len(w.kept) == slowMost && binary.NativeEndian.Uint64(sample[took:]) <= w.kept[0].Took {
		return
	}
	var e slowEvent
	if _, err := binary.Decode(sample, binary.NativeEndian, &e); err != nil {
		w.err = err
		return
	}
	// Now, while the process may still have the file open.
	path := w.paths.find(opened{e.TGID, e.Device, e.Inode, text(e.Name[:])}, -1)
	heap.Push(&w.kept, slowAt{e, path})
	if len(w.kept) > slowMost {
		heap.Pop(&w.kept)
	}
}

// Stop reads the remaining events. It returns the slowest operations, slowest first, and how
// many were slow.
func (w *SlowWatch) Stop() (all []trace.Slow, count uint64, err error) {
	if err := w.reader.Flush(); err != nil && !errors.Is(err, os.ErrClosed) {
		return nil, 0, fmt.Errorf("read slow operations: %w", err)
	}
	<-w.ended
	slices.SortFunc(w.kept, func(a, b slowAt) int { return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Began, b.Began)) })
	for _, s := range w.kept {
		all = append(all, s.slow(s.path, w.origin))
	}
	return all, w.count, w.err
}

// slow makes the description of an operation, in a trace that began at origin
// (CLOCK_MONOTONIC).
func (e *slowEvent) slow(path string, origin uint64) trace.Slow {
	return trace.Slow{After: time.Duration(e.Began - min(e.Began, origin)), Kind: trace.Kind(e.Kind), PID: int(e.TGID), TID: int(e.TID), Process: text(e.Comm[:]), File: path,
		Device: numberOf(e.Device), Inode: e.Inode, Bytes: e.Bytes, Took: time.Duration(e.Took), Split: e.Parts}
}

// numberOf is a device's number, from the kernel's encoding (include/linux/kdev_t.h).
func numberOf(device uint32) blkdev.Number {
	return blkdev.Number{Major: device >> 20, Minor: device & 0xfffff}
}

// slowAt is a slow operation and its file.
type slowAt struct {
	slowEvent
	path string
}

// slowest is a heap with the least slow on top.
type slowest []slowAt

func (s slowest) Len() int           { return len(s) }
func (s slowest) Less(i, j int) bool { return s[i].Took < s[j].Took }
func (s slowest) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slowest) Push(v any)        { *s = append(*s, v.(slowAt)) }
func (s *slowest) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
