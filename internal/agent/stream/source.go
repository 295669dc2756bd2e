package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/look/watch"
)

// An Own reads by itself.
type Own interface {
	Sample(context.Context) (*watch.Snapshot, error)
	// Plans are the names of groups' plans, by the groups' paths. It does not wait long.
	Plans(context.Context, *watch.Snapshot) map[string]string
	Close() error
}

// Options say where readings come from.
type Options struct {
	Socket string              // of weird; empty: weird is not asked
	Also   string              // another one, for who may not connect to that; empty: there is none
	Every  time.Duration       // between two readings of one's own
	Open   func() (Own, error) // is called when nobody else reads

	patience time.Duration // of a test, with a weird that is to take its time; 0: answerMost and silentMost
}

// A Source has one reading after the other: weird's where it tells, its own where not. One goroutine at a
// time may use it.
type Source struct {
	o       Options
	end     context.CancelFunc
	work    sync.WaitGroup
	changed chan struct{} // has a token when what follows has changed

	mu     sync.Mutex
	asking bool // whether weird tells is not known yet
	tells  bool
	view   Reading // weird's last one
	fresh  bool    // it was not returned yet
	told   bool    // weird has told before
	why    error   // why weird does not tell

	own  Own // nil: it is not open
	last time.Time
}

// New makes a Source, which asks weird until Close.
func New(o Options) *Source {
	ctx, end := context.WithCancel(context.Background())
	s := &Source{o: o, end: end, changed: make(chan struct{}, 1), asking: o.Socket != ""}
	if s.asking {
		s.work.Go(func() { s.run(ctx) })
	}
	return s
}

// Close ends its use.
func (s *Source) Close() error {
	s.end()
	s.work.Wait()
	return s.shut()
}

// run asks weird again and again.
func (s *Source) run(ctx context.Context) {
	wait := retryLeast
	for {
		began := time.Now()
		err := follow(ctx, s.o, s.take)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errEnded) && time.Since(began) > endedLeast { // weird ends each request after an hour
			continue
		}
		if s.lost(err) {
			wait = retryLeast
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMost)
	}
}

func (s *Source) take(v Reading) {
	s.mu.Lock()
	s.asking, s.tells, s.told, s.fresh, s.view, s.why = false, true, true, true, v, nil
	s.mu.Unlock()
	s.wake()
}

// lost notes that weird tells no more; was says whether it did.
func (s *Source) lost(err error) (was bool) {
	s.mu.Lock()
	was = s.tells
	s.asking, s.tells, s.fresh, s.view, s.why = false, false, false, Reading{}, err
	s.mu.Unlock()
	s.wake()
	return was
}

func (s *Source) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// theirs is weird's next reading, if there is one. waits says that it is worth waiting for one.
func (s *Source) theirs() (v Reading, is, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh {
		s.fresh = false
		return s.view, true, true
	}
	return Reading{}, false, s.asking || s.tells
}

// Next waits for the next reading. By oneself the first one has no rates.
func (s *Source) Next(ctx context.Context) (Reading, error) {
	for {
		v, is, waits := s.theirs()
		if is {
			return v, s.shut() // what was read by oneself is not needed any more
		}
		var due <-chan time.Time
		if !waits {
			due = time.After(time.Until(s.last.Add(s.o.Every)))
		}
		select {
		case <-ctx.Done():
			return Reading{}, ctx.Err()
		case <-s.changed:
		case <-due:
			return s.ours(ctx)
		}
	}
}

// ours reads by oneself.
func (s *Source) ours(ctx context.Context) (Reading, error) {
	if s.own == nil {
		own, err := s.o.Open()
		if err != nil {
			return Reading{}, err
		}
		s.own = own
	}
	s.last = time.Now()
	snapshot, err := s.own.Sample(ctx)
	if err != nil {
		return Reading{}, err
	}
	return Reading{Snapshot: snapshot, Plans: s.own.Plans(ctx, snapshot), Source: api.TopSource{From: api.FromTop, Why: s.whyNot()}}, nil
}

// whyNot is why weird does not tell. That none runs is worth no word, unless one ran before.
func (s *Source) whyNot() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil || errors.Is(s.why, errAbsent) && !s.told {
		return ""
	}
	return s.why.Error()
}

func (s *Source) shut() error {
	if s.own == nil {
		return nil
	}
	err := s.own.Close()
	s.own, s.last = nil, time.Time{}
	return err
}
