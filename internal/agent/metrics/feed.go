package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
)

// A Sampler is what reads: watch.Watcher.
type Sampler interface {
	Sample(context.Context) (*watch.Snapshot, error)
}

// A Feed reads when somebody asks, and at most once in a time, however many ask.
type Feed struct {
	sampler Sampler
	least   time.Duration
	now     func() time.Time
	each    func(s *watch.Snapshot, own bool) // nil: nobody wants all

	mu       sync.Mutex // of what follows, and of the sampler
	last     *watch.Snapshot
	at       time.Time
	measured *measuring
}

// NewFeed makes a Feed that reads at most once in least.
func NewFeed(s Sampler, least time.Duration) *Feed {
	return &Feed{sampler: s, least: least, now: time.Now, measured: newMeasuring()}
}

// Each has do called with each new snapshot, one after the other. own says that Read has made it, and not somebody who
// asks. Each is called before the first one.
func (f *Feed) Each(do func(s *watch.Snapshot, own bool)) { f.each = do }

// Snapshot returns the last snapshot if it is fresh, else a new one.
func (f *Feed) Snapshot(ctx context.Context) (*watch.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fresh(ctx)
}

func (f *Feed) fresh(ctx context.Context) (*watch.Snapshot, error) {
	if f.last != nil && f.now().Sub(f.at) < f.least {
		return f.last, nil
	}
	return f.read(ctx, false)
}

// Measured is Snapshot, with what was measured of limits until then.
func (f *Feed) Measured(ctx context.Context) (*watch.Snapshot, map[limitOf]bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.fresh(ctx)
	if err != nil {
		return nil, nil, err
	}
	return s, f.measured.at(s.At), nil
}

// Read returns a new snapshot, which is fresh for others from then on.
func (f *Feed) Read(ctx context.Context) (*watch.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read(ctx, true)
}

func (f *Feed) read(ctx context.Context, own bool) (*watch.Snapshot, error) {
	s, err := f.sampler.Sample(ctx)
	if err != nil {
		return nil, err
	}
	f.last, f.at = s, f.now()
	f.measured.look(s)
	if f.each != nil {
		f.each(s, own)
	}
	return s, nil
}

// Newer returns the last snapshot if it is another one than seen and not older than age, else a new
// one. So who follows a feed that is read for others each second has those readings, and costs none.
func (f *Feed) Newer(ctx context.Context, seen *watch.Snapshot, age time.Duration) (*watch.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && f.last != seen && f.now().Sub(f.at) < age {
		return f.last, nil
	}
	return f.read(ctx, false)
}
