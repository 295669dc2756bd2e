package partial

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/bpf/handover"
	"github.com/weir-io/weir/internal/linux/bpf/refusal"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

const (
	counting  = "count partly written folios"
	kernelMin = "6.3" // the first whose buffer heads name their folio; ext4 has large ones since 6.16
	// memlock is enough for all maps, bytes.
	memlock = 16 << 20
	// levelMost is how far below the root a group may be (LEVELS_MAX in bpf/partial.bpf.c).
	levelMost = 15
)

// key and sum are struct key and struct sum of bpf/partial.bpf.c.
type key struct {
	Group     uint64
	Device, _ uint32
}

// Flags of a sum.
const (
	alone   = 1 << 0
	foreign = 1 << 1
)

type sum struct {
	Level, Flags uint32
	Spare        int64
	Behind       uint64
	Later        uint64
	Stored       uint64
}

// A Watcher counts for groups. What it has loaded is gone when it is closed or its process ends.
// Tasks of other groups pay one check for each block that they make dirty.
type Watcher struct {
	objects partialObjects
	hooks   []io.Closer

	mu     sync.Mutex
	levels map[uint64]uint32 // of the groups that are counted, by their numbers
}

// Watch loads the programs. If BPF is not available, the error is a *bpf.Unavailable.
func Watch(groups *cgroupfs.FS) (_ *Watcher, err error) {
	if groups.Root() != "/" {
		return nil, &bpf.Unavailable{Op: counting, Reason: groups.Root() + " is not the root of this host", Remedy: "only the running kernel knows; ask about this host"}
	}
	if host, err := bpf.InHostCgroups(); err == nil && !host {
		return nil, &bpf.Unavailable{Op: counting, Reason: "weir cannot see from this cgroup namespace where groups are", Remedy: "run weir on the host"}
	}
	if err := bpf.Hindrance("/", counting, kernelMin); err != nil {
		return nil, err
	}
	spec, err := loadPartial()
	if err != nil {
		return nil, refused(err)
	}
	if err := spec.Variables[partialVarPageBytes].Set(uint32(os.Getpagesize())); err != nil {
		return nil, refused(err)
	}
	w := &Watcher{levels: map[uint64]uint32{}}
	err = spec.LoadAndAssign(&w.objects, nil)
	if errors.Is(err, unix.EPERM) && bpf.RaiseMemlock(memlock) {
		err = spec.LoadAndAssign(&w.objects, nil)
	}
	if err == nil {
		err = w.attach()
	}
	if err != nil {
		return nil, errors.Join(refused(err), w.Close())
	}
	return w, nil
}

// attach hooks up the programs. Without XFS's tracepoints (a module that is not loaded) its
// files count whole, as they do without a Watcher.
func (w *Watcher) attach() error {
	stores, ends := false, false
	for _, hook := range []struct {
		name    string
		program *ebpf.Program
	}{
		// A block is taken off before its folio is added, so that never too much is taken off.
		{"block_dirty_buffer", w.objects.CountBlock},
		{"xfs_write_fault", w.objects.BeginStore},
		{"xfs_filemap_fault", w.objects.BeginStoreBefore},
		{"xfs_iunlock", w.objects.EndWrite},
		{"xfs_file_buffered_write", w.objects.BeginWrite},
		{"writeback_dirty_folio", w.objects.CountFolio},
	} {
		// Nothing is taken off that a store, or the rest of a write, could write unseen.
		if hook.program == w.objects.BeginWrite && (!stores || !ends) {
			continue
		}
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: hook.name, Program: hook.program})
		if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(hook.name, "xfs_") {
			continue
		}
		if err != nil {
			return fmt.Errorf("attach to %s: %w", hook.name, err)
		}
		w.hooks = append(w.hooks, l)
		stores = stores || hook.program == w.objects.BeginStore || hook.program == w.objects.BeginStoreBefore
		ends = ends || hook.program == w.objects.EndWrite
	}
	return nil
}

// Descriptors are what another process needs to count with what this one has loaded: see Taken.
func (w *Watcher) Descriptors() ([]int, error) {
	return handover.Descriptors([]*ebpf.Map{w.objects.Groups, w.objects.Levels}, w.hooks)
}

// Taken is a Watcher of the descriptors of another one, which counts for no group yet. They belong
// to it from then on.
func Taken(fds []int) (w *Watcher, err error) {
	w = &Watcher{levels: map[uint64]uint32{}}
	w.hooks, err = handover.Maps(fds, &w.objects.Groups, &w.objects.Levels)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func refused(err error) error { return refusal.Of(counting, kernelMin, err) }

// Close ends the counting.
func (w *Watcher) Close() error {
	var errs []error
	for _, hook := range w.hooks {
		errs = append(errs, hook.Close())
	}
	return errors.Join(append(errs, w.objects.Close())...)
}

// A Count counts for one group and, on cgroup v2, for the groups below it.
type Count struct {
	watcher *Watcher
	id      uint64
	disks   func() []blkdev.Number // of a Count of what escapes: those that count
	began   time.Time
	last    sum
	behind  float64 // of what was spare, in folios of which what is dirty now is not known
}

// Add starts to count for a group.
func (w *Watcher) Add(g cgroupfs.Group) (*Count, error) { return w.add(g, nil) }

// AddEscapes starts to count for a group of cgroup v2 only what is in files whose writeback the
// kernel charges to others: see package escape. It counts on the disks that disks returns at each
// call of Spare.
func (w *Watcher) AddEscapes(g cgroupfs.Group, disks func() []blkdev.Number) (*Count, error) {
	return w.add(g, disks)
}

func (w *Watcher) add(g cgroupfs.Group, disks func() []blkdev.Number) (*Count, error) {
	id, err := g.ID()
	if err != nil {
		return nil, err
	}
	level := uint32(len(strings.FieldsFunc(g.Path(), func(r rune) bool { return r == '/' })))
	if level == 0 || level > levelMost {
		return nil, fmt.Errorf(counting+" of cgroup %s: weir can do this for groups 1 to %d levels below the root", g.Path(), levelMost)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := first(level, g.Hierarchy().Version)
	if disks != nil {
		all.Flags |= foreign
	}
	if err := w.objects.Groups.Put(key{Group: id}, all); err != nil {
		return nil, fmt.Errorf(counting+" of cgroup %s: %w", g.Path(), err)
	}
	w.levels[id] = level
	if err := w.use(); err != nil {
		delete(w.levels, id)
		return nil, errors.Join(fmt.Errorf(counting+" of cgroup %s: %w", g.Path(), err), w.objects.Groups.Delete(key{Group: id}))
	}
	return &Count{watcher: w, id: id, disks: disks, began: time.Now()}, nil
}

// first is what is known of a group at first. On cgroup v1 the processes of groups below it are
// not among those that write_bytes is read of.
func first(level uint32, version cgroupfs.Version) sum {
	s := sum{Level: level}
	if version == cgroupfs.V1 {
		s.Flags = alone
	}
	return s
}

// use tells the programs at which levels they have to look for groups.
func (w *Watcher) use() error {
	var used uint64
	for _, level := range w.levels {
		used |= 1 << level
	}
	return w.objects.Levels.Put(uint32(0), used)
}

// Spare returns how many bytes write_bytes has counted too much since the last call. Less than
// 0: what it had counted too much before has been written.
func (c *Count) Spare() (bytes float64, err error) {
	var now, disk sum
	if err := c.watcher.objects.Groups.Lookup(key{Group: c.id}, &now); err != nil {
		return 0, fmt.Errorf(counting+": %w", err)
	}
	if c.disks == nil {
		return c.take(now, time.Now()), nil
	}
	for _, n := range c.disks() {
		err := c.watcher.objects.Groups.Lookup(key{Group: c.id, Device: device(n)}, &disk)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf(counting+": %w", err)
		}
		now.add(disk)
	}
	return c.take(now, time.Now()), nil
}

// add adds what escapes to a disk.
func (s *sum) add(disk sum) {
	s.Spare += disk.Spare
	s.Behind += disk.Behind
	s.Later += disk.Later
}

// minorBits are those of the kernel's own dev_t (include/linux/kdev_t.h).
const minorBits = 20

func device(n blkdev.Number) uint32 { return n.Major<<minorBits | n.Minor }

// Before tells that write_bytes may have counted so many bytes too much before the counting began,
// or, if they are negative, that they have been written. Stores write these as well.
func (c *Count) Before(bytes float64) { c.behind = max(0, c.behind+bytes) }

// unknownFor is for how long folios can be dirty that became so before the counting began: the
// kernel writes them back after vm.dirty_expire_centisecs, 30 s.
const unknownFor = time.Minute

// take takes in what the programs have counted. Writes to folios that were dirty already write
// what was spare there, at most. So do stores. What was spare before the counting began is not
// known.
func (c *Count) take(now sum, at time.Time) (bytes float64) {
	c.behind += float64(now.Behind - c.last.Behind)
	later := float64(now.Later - c.last.Later)
	if at.Sub(c.began) > unknownFor {
		later = min(c.behind, later)
	}
	later += min(max(0, c.behind-later), float64(now.Stored-c.last.Stored))
	c.behind = max(0, c.behind-later)
	bytes = float64(now.Spare-c.last.Spare) - later
	c.last = now
	return bytes
}

// Close ends the counting for the group.
func (c *Count) Close() error {
	c.watcher.mu.Lock()
	defer c.watcher.mu.Unlock()
	delete(c.watcher.levels, c.id)
	errs := []error{c.watcher.use()}
	var k key
	var of sum
	gone := []key{{Group: c.id}}
	all := c.watcher.objects.Groups.Iterate()
	for all.Next(&k, &of) {
		if k.Group == c.id && k.Device != 0 {
			gone = append(gone, k)
		}
	}
	for _, k := range gone { // the group first, or its disks come again
		if err := c.watcher.objects.Groups.Delete(k); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, all.Err())...)
}
