package watcher

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/bpf/handover"
	"github.com/weir-io/weir/internal/linux/bpf/refusal"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode/owners"
)

const (
	// memlock is enough for all maps, bytes.
	memlock = 64 << 20
	// levelMost is how far below the root a group may be (LEVELS_MAX in bpf/escape.bpf.c).
	levelMost = 15
)

// tracepoints are the names of the tracepoint; the second until 5.17 (203a31516616).
var tracepoints = []string{"writeback_dirty_folio", "writeback_dirty_page"}

// A Watcher counts with BPF what escapes groups. What it has loaded is gone when it is closed
// or its process ends. Tasks of other groups pay one check of their group for each page that
// they dirty.
type Watcher struct {
	objects escapeObjects
	hook    io.Closer
	steps   *ringbuf.Reader

	mu     sync.Mutex
	levels map[uint64]uint32 // of the groups that are counted, by their numbers
}

// Watch loads the program. If BPF is not available, the error is a *bpf.Unavailable.
func Watch(groups *cgroupfs.FS) (_ *Watcher, err error) {
	if err := escape.Hindrance(groups); err != nil {
		return nil, err
	}
	spec, err := loadEscape()
	if err != nil {
		return nil, refused(err)
	}
	if err := spec.Variables[escapeVarPageBytes].Set(uint32(os.Getpagesize())); err != nil {
		return nil, refused(err)
	}
	w := &Watcher{levels: map[uint64]uint32{}}
	err = spec.LoadAndAssign(&w.objects, nil)
	if errors.Is(err, unix.EPERM) && bpf.RaiseMemlock(memlock) {
		err = spec.LoadAndAssign(&w.objects, nil)
	}
	if err != nil {
		return nil, refused(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	for _, name := range tracepoints {
		w.hook, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: w.objects.CountEscapes})
		if err == nil || !errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, refused(err)
	}
	if w.steps, err = ringbuf.NewReader(w.objects.Steps); err != nil {
		return nil, refused(err)
	}
	return w, nil
}

// Descriptors are what another process needs to count with what this one has loaded: see Taken.
func (w *Watcher) Descriptors() ([]int, error) {
	return handover.Descriptors(w.objects.maps(), []io.Closer{w.hook})
}

// Taken is a Watcher of the descriptors of another one, which counts no group yet. They belong to
// it from then on.
func Taken(fds []int) (*Watcher, error) {
	w := &Watcher{levels: map[uint64]uint32{}}
	o := &w.objects
	hooks, err := handover.Maps(fds, &o.Groups, &o.Levels, &o.Sums, &o.Files, &o.Steps)
	if err != nil {
		return nil, err
	}
	if len(hooks) != 1 {
		err = fmt.Errorf(escape.Counting+": %d hooks, want 1", len(hooks))
	} else {
		w.steps, err = ringbuf.NewReader(o.Steps)
	}
	if len(hooks) > 0 {
		w.hook = hooks[0]
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (o *escapeObjects) maps() []*ebpf.Map {
	return []*ebpf.Map{o.Groups, o.Levels, o.Sums, o.Files, o.Steps}
}

func refused(err error) error { return refusal.Of(escape.Counting, escape.KernelMin, err) }

// Close ends the counting.
func (w *Watcher) Close() error {
	var errs []error
	if w.hook != nil {
		errs = append(errs, w.hook.Close())
	}
	if w.steps != nil {
		errs = append(errs, w.steps.Close())
	}
	return errors.Join(append(errs, w.objects.Close())...)
}

// Add starts to count a group and the groups below it. Wait reports it each time that step more
// bytes have escaped; 0: never.
func (w *Watcher) Add(g cgroupfs.Group, step uint64) error {
	id, err := g.ID()
	if err != nil {
		return err
	}
	level := g.Level()
	if level == 0 || level > levelMost {
		return fmt.Errorf("count writes of cgroup %s to files of other groups: weir can do this for groups 1 to %d levels below the root", g.Path(), levelMost)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.objects.Groups.Put(id, counted{Level: level, Step: step}); err != nil {
		return fmt.Errorf("count writes of cgroup %s to files of other groups: %w", g.Path(), err)
	}
	w.levels[id] = level
	return w.use()
}

// Remove ends the counting of a group, by its number.
func (w *Watcher) Remove(id uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.levels, id)
	errs := []error{w.use()}
	if err := w.objects.Groups.Delete(id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		errs = append(errs, err)
	}
	var key sumKey
	var bytes uint64
	var gone []sumKey
	all := w.objects.Sums.Iterate()
	for all.Next(&key, &bytes) {
		if key.Group == id {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		if err := w.objects.Sums.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, all.Err())...)
}

// use tells the program at which levels it has to count groups.
func (w *Watcher) use() error {
	var used uint64
	for _, level := range w.levels {
		used |= 1 << level
	}
	return w.objects.Levels.Put(uint32(0), used)
}

// Escaped returns the bytes that have escaped a group since Add, by disk. A file system on
// several disks (btrfs) has a number of its own, with major 0.
func (w *Watcher) Escaped(id uint64) (map[blkdev.Number]uint64, error) {
	escaped := map[blkdev.Number]uint64{}
	var key sumKey
	var bytes uint64
	all := w.objects.Sums.Iterate()
	for all.Next(&key, &bytes) {
		if key.Group == id {
			escaped[deviceOf(key.Device)] += bytes
		}
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf(escape.Counting+": %w", err)
	}
	return escaped, nil
}

// Files returns the files through which most bytes escaped, the largest amount first.
func (w *Watcher) Files(id uint64, h *cgroupfs.Hierarchy) ([]escape.File, error) {
	var key fileKey
	var e escapedRecord
	var files []escape.File
	mounts, _ := blkdev.New("/").Mounts(0) // without, the names are those in the file system
	all := w.objects.Files.Iterate()
	for all.Next(&key, &e) {
		if key.Group == id {
			f := e.file(mounts)
			f.Owner.ID, f.Owner.Path = key.Owner, owners.GroupPath(h, key.Owner)
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b escape.File) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Path, b.Path))
	})
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf(escape.Counting+": %w", err)
	}
	return files, nil
}

// Wait returns the number of a group of which step more bytes have escaped, or
// os.ErrDeadlineExceeded at the deadline.
func (w *Watcher) Wait(deadline time.Time) (id uint64, err error) {
	w.steps.SetDeadline(deadline)
	record, err := w.steps.Read()
	if err != nil {
		return 0, err
	}
	return readID(record.RawSample)
}

// FD is a descriptor that becomes readable when Drain has something to return.
func (w *Watcher) FD() int { return w.objects.Steps.FD() }

// Drain returns the numbers of groups of which step more bytes have escaped, without waiting.
func (w *Watcher) Drain() (ids []uint64) {
	for {
		id, err := w.Wait(time.Now().Add(-time.Second))
		if err != nil {
			return ids
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
}
