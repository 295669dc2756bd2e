package tree

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone says that the root is gone: it was removed or unmounted, or something is mounted over it.
// The kernel tells of few of these cases; Resync finds all.
var ErrGone = errors.New("the root of the tree is gone")

const (
	groupsMax = 100_000
	depthMax  = 64
)

// A Tree follows the groups below one directory. Its methods may be called from one goroutine at
// a time.
type Tree struct {
	options Options
	dir     string
	root    int      // descriptor of the directory
	counts  bool     // the links of a directory say how many are below it
	fd      int      // of inotify
	wake    *os.File // an eventfd(2) that ends a wait
	wakeFD  int

	top     *node
	watched map[int32]*node
	events  []Event
	buffer  []byte
	groups  int // in the tree, without the top
	stats   Stats
	limit   *LimitError    // of the last comparison, or since; nil: all groups have a watch
	found   map[change]int // what a comparison that goes on has changed: how many groups each is about
	finding bool           // the comparison walks through the tree
	lost    bool           // the kernel has dropped events since the last comparison
}

// A change of one group.
type change struct {
	kind Kind
	path string
}

// Open begins to follow a directory. The first Next returns all groups that are there as born.
func Open(dir string, o Options) (*Tree, error) {
	o.GroupsMax, o.DepthMax = cmp.Or(o.GroupsMax, groupsMax), cmp.Or(o.DepthMax, depthMax)
	if o.Each == nil {
		o.Each = func() {}
	}
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "follow", Path: dir, Err: err}
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		if errors.Is(err, unix.EMFILE) {
			err = NoInstance()
		}
		return nil, errors.Join(fmt.Errorf("follow %s: %w", dir, err), unix.Close(root))
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("follow %s: %w", dir, err), unix.Close(root), unix.Close(fd))
	}
	t := &Tree{options: o, dir: dir, root: root, fd: fd, wake: os.NewFile(uintptr(wake), "eventfd"), wakeFD: wake,
		counts: isCgroup(root), top: &node{watch: noWatch}, watched: map[int32]*node{}, buffer: make([]byte, bufferSize)}
	if err := t.enter(t.top); err != nil {
		return nil, errors.Join(fmt.Errorf("follow %s: %w", dir, err), t.Close())
	}
	if t.top.watch == noWatch {
		return nil, errors.Join(fmt.Errorf("follow %s: %w", dir, t.limit), t.Close())
	}
	return t, nil
}

// Close ends the following.
func (t *Tree) Close() error {
	if t.root < 0 {
		return nil
	}
	err := errors.Join(unix.Close(t.fd), t.wake.Close(), unix.Close(t.root))
	t.root = -1
	return err
}

// Next waits for changes and returns them in the order in which they happened. It returns at
// least one, or an error, ErrGone or that of the context. The wait is a system call of the calling
// thread: Go's poller would hand what it reads from thread to thread.
func (t *Tree) Next(ctx context.Context) ([]Event, error) {
	stop := context.AfterFunc(ctx, t.interrupt)
	defer stop()
	for len(t.events) == 0 {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := t.proceed(); err != nil {
			return nil, fmt.Errorf("follow %s: %w", t.dir, err)
		}
	}
	return t.flush(), nil
}

// proceed takes the next events, or waits for some.
func (t *Tree) proceed() error {
	if t.lost {
		return t.compare()
	}
	n, err := unix.Read(t.fd, t.buffer)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case errors.Is(err, unix.EAGAIN):
		return t.await()
	case err != nil:
		return err
	}
	return t.take(t.buffer[:n])
}

// await waits until there is something to be read, or until interrupt.
func (t *Tree) await() error {
	files := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}, {Fd: int32(t.wakeFD), Events: unix.POLLIN}}
	if _, err := unix.Ppoll(files, nil, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	if files[1].Revents != 0 {
		_, _ = unix.Read(t.wakeFD, make([]byte, wakeSize)) // somebody may have been before
	}
	return nil
}

// wakeSize is what eventfd(2) reads and writes.
const wakeSize = 8

// interrupt ends a wait: this one, or the next.
func (t *Tree) interrupt() {
	_, _ = t.wake.Write(binary.NativeEndian.AppendUint64(nil, 1)) // closed: nobody waits
}

func (t *Tree) flush() []Event {
	events := t.events
	t.events = nil
	return events
}

// Groups are the paths of all groups that are known, sorted.
func (t *Tree) Groups() []string {
	var all []string
	t.top.each(func(n *node) { all = append(all, n.path()) })
	slices.Sort(all)
	return all
}

// Stats returns the counters.
func (t *Tree) Stats() Stats {
	s := t.stats
	s.Groups = t.groups
	s.Unwatched = t.groups + 1 - len(t.watched) // a node has one watch at most, the root too
	return s
}

// Limit says that some groups have no watch, because the user has as many as the kernel allows;
// nil: all have one.
func (t *Tree) Limit() error {
	if t.limit == nil {
		return nil
	}
	return t.limit
}

// Resync compares all that is known with what is there, and returns the difference. It is the
// safety net: what it finds no event has told of, and Stats.Missed counts it. Groups without a
// watch get one, if the kernel allows it now.
func (t *Tree) Resync() ([]Event, error) {
	if err := t.drain(); err != nil { // what is still to be read is not missed
		return nil, fmt.Errorf("follow %s: %w", t.dir, err)
	}
	if err := t.compare(); err != nil {
		return nil, fmt.Errorf("follow %s: %w", t.dir, err)
	}
	return t.flush(), nil
}

// The kernel shows a directory, or its end, before it tells of it (vfs_mkdir and vfs_rmdir in
// fs/namei.c): on a busy processor some time before. lateMost is for how long a comparison that
// found something waits for that.
const lateStep, lateMost = time.Millisecond, 100 * time.Millisecond

// compare finds what has changed without an event.
func (t *Tree) compare() error {
	if t.lost || t.Stats().Unwatched > 0 { // else events have told of all writes
		t.events = append(t.events, Event{Kind: Lost, Path: t.top.path()})
	}
	t.found, t.finding, t.limit, t.lost = map[change]int{}, true, nil, false
	defer func() { t.found = nil }()
	err := t.isThere()
	if err == nil {
		err = t.check(t.top)
	}
	t.finding = false
	if err != nil {
		return err
	}
	for wait := time.Duration(0); ; wait += lateStep { // what happened during the comparison is told of now
		if err := t.drain(); err != nil {
			return err
		}
		if len(t.found) == 0 || t.lost || wait >= lateMost {
			break
		}
		time.Sleep(lateStep)
	}
	for n := range maps.Values(t.found) {
		t.stats.Missed += uint64(n)
	}
	return nil
}
