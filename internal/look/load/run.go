package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/pagecache"
)

// Run does the job. If it created File, the caller has to remove it. errors.Is(err,
// errors.ErrUnsupported) says that the file system or the kernel does not have this path of
// I/O. ctx is checked between operations; a blocked operation is waited for.
func Run(ctx context.Context, j Job) (Result, error) { return run(ctx, j, nil) }

// RunTo does the job and writes to out, a line of JSON each, Ticks while it runs, from
// the start and then every 100 ms as operations end, and the Result. Decode reads them.
// A tick that out has no room for is left out; it never holds the load up. The load
// ends with an error when nobody can read out any more.
func RunTo(ctx context.Context, j Job, out *os.File) error {
	report := newReporter(out)
	r, err := run(ctx, j, report)
	if err != nil {
		return err
	}
	return report.result(r)
}

// A doer does operations.
type doer interface {
	// do does the n-th operation, at an offset of the file.
	do(n uint64, at int64) error
	close() error
}

func run(ctx context.Context, j Job, report *reporter) (r Result, err error) {
	if err := j.check(); err != nil {
		return r, err
	}
	f, err := j.open()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m, unwatch, err := newMeter(ctx, j, report)
	if err != nil {
		return r, err
	}
	defer unwatch()
	if j.Read {
		// Direct reads too would first have dirty pages written.
		if err := pagecache.Evict(f, 0, j.Size); err != nil {
			return r, fmt.Errorf("load: %w", err)
		}
	}
	if err := j.loop(m, f); err != nil {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		return r, fmt.Errorf("load %s: %w", j.name(), err)
	}
	r = m.sum()
	left, err := pagecache.Resident(f, 0, j.Size)
	if err != nil {
		return r, fmt.Errorf("load: %w", err)
	}
	r.Left = Left{Known: left.StateKnown && !onOverlay(f), Dirty: left.Dirty, Writeback: left.Writeback}
	return r, nil
}

// onOverlay reports whether a file is overlayfs's, whose pages are another file's.
func onOverlay(f *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC
}

// errStopped ends a loop whose context is done.
var errStopped = errors.New("stopped")

// loop stays on one thread, as a load without a runtime would: what the kernel keeps
// about a thread's I/O is then about all of it.
func (j Job) loop(m *meter, f *os.File) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if j.Path == Async {
		return j.loopAsync(m, f)
	}
	d, err := j.doer(f)
	if err != nil {
		return err
	}
	return errors.Join(j.oneByOne(m, f, d), d.close())
}

func (j Job) doer(f *os.File) (doer, error) {
	if j.Path == Mapped {
		return newMapping(j, f)
	}
	return newCaller(j, f)
}

// oneByOne does operations one after the other until the window is over.
func (j Job) oneByOne(m *meter, f *os.File, d doer) error {
	order := newOrder(j)
	var cold *cold
	if j.cold() {
		forget := func() error { return nil }
		if mapping, ok := d.(*mapping); ok {
			forget = mapping.forget
		}
		cold = newCold(j, f, forget)
	}
	began, err := m.start()
	first := began
	for n, over := uint64(0), false; err == nil && !over; n++ {
		if m.stopped.Load() {
			return errStopped
		}
		at := order.at(n)
		var cached float64
		if cold != nil {
			var worked bool
			if cached, worked, err = cold.before(n, at); err != nil {
				return err
			}
			if worked {
				began = m.now()
			}
		}
		if early := j.due(n) - time.Duration(began-first); early > 0 {
			time.Sleep(early)
			began = m.now()
		}
		if err := d.do(n, at); err != nil {
			return err
		}
		began, over, err = m.done(began, m.now(), cached)
	}
	return err
}

// due is how long after the first the n-th operation may begin.
func (j Job) due(n uint64) time.Duration {
	if j.Pace == 0 {
		return 0
	}
	return time.Duration(float64(n) * float64(j.Block) / float64(j.Pace) * float64(time.Second))
}

// allocate returns zeroed memory that begins a page, and that Go's collector knows
// nothing of: the kernel may be at it at any time.
func allocate(bytes int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", bytes, err)
	}
	return b, nil
}
