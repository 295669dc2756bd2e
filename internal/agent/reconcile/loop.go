package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// LookMost bounds one look at targets.
	LookMost = 30 * time.Second
	// PutMost bounds one change.
	PutMost = 30 * time.Second
	// reconnectLeast and reconnectMost bound the time until a source is followed again, which
	// doubles with each failure. One that has worked for reconnectMost begins anew.
	reconnectLeast = 100 * time.Millisecond
	reconnectMost  = time.Minute
	// eventMost is how long an event is waited for before a change counts as missed.
	eventMost = 50 * time.Millisecond
	// notHereMost is how late something is found that was never here.
	notHereMost = 5 * time.Second
)

// A Loop keeps the targets of sources.
type Loop struct {
	Core *Core
	Log  *slog.Logger
	// Tell is told of each deed, and must not wait; nil: nobody is.
	Tell func(Deed)
	// Begun is closed once who calls Changed and Written misses nothing any more, or has failed: the first
	// looks wait for that, for a while; nil: they do not.
	Begun <-chan struct{}
	// Silent reports whether who calls Changed and Written is not told of changes itself now; nil: that never is.
	Silent func() bool

	mu      sync.Mutex
	sources map[string]*source
	unseen  int           // sources that have not looked yet
	looked  chan struct{} // closed once all have
}

// Looked is closed when each source has looked at all its targets once, and what was to be done is
// done, or has failed.
func (l *Loop) Looked() <-chan struct{} { return l.looked }

// A Following says how a source is.
type Following struct {
	Kind       string
	Follows    bool      // its events come
	Since      time.Time // that is so
	Reconnects uint64    // how often it had to be followed anew
	Error      string    // of the last time; empty: none
	LookError  string    // why its targets could not all be looked at last; empty: they could
}

// source is what the Loop knows of one.
type source struct {
	Source
	kind  string
	how   Following
	wake  chan struct{}
	begun chan struct{} // closed once events come, or cannot be had
	all   bool          // everything is to be looked at
	names map[string]bool
	wrote map[string]string // groups whose rules were written → names of the targets that they may be of
	began time.Time         // the call to Look or Put that goes on; zero: none does
	told  bool              // an event told of it, not the clock
	hurry bool              // one that does not wait for more did
	soon  bool              // one that waits did
	seen  bool              // it has looked once
	here  bool              // it was followed once

	// Only work uses these:
	looked time.Time // when the last Look returned
	missed bool      // it has found what no event told of
	beside bool      // how.LookError is of what is beside the targets, and was told
}

// NewLoop makes a Loop.
func NewLoop(core *Core, log *slog.Logger, all ...Source) *Loop {
	l := &Loop{Core: core, Log: log, sources: map[string]*source{}, unseen: len(all), looked: make(chan struct{})}
	for _, s := range all {
		l.sources[s.Kind()] = &source{Source: s, wake: make(chan struct{}, 1), begun: make(chan struct{}), names: map[string]bool{}, wrote: map[string]string{},
			kind: s.Kind(), how: Following{Kind: s.Kind(), Since: time.Now()}}
	}
	return l
}

// Run keeps the targets until the context ends, and returns when all that it began has ended.
func (l *Loop) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, s := range l.sources {
		l.tell(s, "", true) // what is there is looked at before any event
		running.Go(func() { l.follow(ctx, s) })
		running.Go(func() { l.work(ctx, s) })
	}
	running.Wait()
}

// Sources say how the sources are.
func (l *Loop) Sources() (all []Following) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sources {
		all = append(all, s.how)
	}
	return all
}

// stuckTime is after what time a call that is bounded by LookMost or PutMost does not end any more.
const stuckTime = LookMost + PutMost

// Stuck names a kind whose Look or Put goes on for far longer than it may, for example in the kernel;
// empty: none does.
func (l *Loop) Stuck() (kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sources {
		if !s.began.IsZero() && time.Since(s.began) > stuckTime {
			return s.kind
		}
	}
	return ""
}

func (l *Loop) begin(s *source, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.began = at
}

// follow follows a source's events, again and again.
func (l *Loop) follow(ctx context.Context, s *source) {
	begun := sync.OnceFunc(func() { close(s.begun) })
	if !s.Follows() {
		begun()
	}
	for wait := reconnectLeast; ; wait = min(2*wait, reconnectMost) {
		began := time.Now()
		err := s.Follow(ctx, func(name string) {
			if name == "" {
				l.set(s, true, nil)
			}
			l.tell(s, name, true)
			begun()
		})
		begun()
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			err = errors.New("the stream of events has ended")
		case errors.Is(err, ErrNotHere) && !l.wasHere(s):
			err, wait = nil, min(wait, notHereMost)
		}
		if time.Since(began) > reconnectMost {
			wait = reconnectLeast
		}
		if l.set(s, false, err) {
			l.Log.Warn("weird is not told of changes", "kind", s.kind, "error", err, "again_in", wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// set notes whether a source is followed. It reports whether that is news.
func (l *Loop) set(s *source, follows bool, err error) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
		s.how.Reconnects++
	}
	news = s.how.Follows != follows || s.how.Error != text
	if s.how.Follows != follows {
		s.how.Since = time.Now()
	}
	s.how.Follows, s.how.Error = follows, text
	s.here = s.here || follows
	return news && (follows || err != nil)
}

func (l *Loop) wasHere(s *source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.here
}

// work looks at what has changed, and does what the Core says.
func (l *Loop) work(ctx context.Context, s *source) {
	l.awaitEvents(ctx, s)
	resync := newComparing(time.Now())
	retry, wait := time.Time{}, reconnectLeast // after a look that failed
	for {
		until := earliest(resync.at, retry)
		if retry.IsZero() { // else what is due waits for a look that succeeds
			until = earliest(resync.at, l.Core.Due(s.kind))
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			if !l.waits(s) || time.Now().Before(l.gathers(s)) { // the last look had it, or more is gathered
				continue
			}
		case <-time.After(time.Until(earliest(until, l.gathers(s)))):
		}
		names, told, is := l.pending(ctx, s, !time.Now().Before(resync.at))
		if !is {
			continue
		}
		began := time.Now()
		s.missed = false
		err := l.look(ctx, s, names, told)
		if ctx.Err() != nil {
			return
		}
		if names == nil {
			resync.looked(began, told, err == nil && !s.missed && !l.isSilent(s))
		}
		l.mu.Lock()
		if !s.seen {
			s.seen = true
			if l.unseen--; l.unseen == 0 {
				close(l.looked)
			}
		}
		beside := errors.Is(err, ErrBeside)
		said := s.found(names, err, beside)
		if err != nil && !beside {
			s.all, s.told = true, s.told || told // what this look did not find, the next one has to
		}
		l.mu.Unlock()
		if err == nil || beside {
			if retry, wait = (time.Time{}), reconnectLeast; beside && said {
				l.Log.Warn("weird has looked at targets", "kind", s.kind, "error", err)
			}
			continue
		}
		if said {
			l.Log.Warn("weird cannot look at targets", "kind", s.kind, "error", err, "again_in", wait)
		}
		retry, wait = time.Now().Add(wait), min(2*wait, reconnectMost)
	}
}

// found notes the error of a look, and reports whether it is news. The Loop is locked. A look at a few targets does not say
// what else is wrong beside the targets.
func (s *source) found(names []string, err error, beside bool) (news bool) {
	if names != nil && s.beside && (err == nil || beside) {
		return false
	}
	before := s.how.LookError
	s.beside, s.how.LookError = beside, ""
	if err != nil {
		s.how.LookError = err.Error()
	}
	return s.how.LookError != before
}

func (l *Loop) look(ctx context.Context, s *source, names []string, told bool) error {
	bounded, cancel := context.WithTimeoutCause(ctx, LookMost, fmt.Errorf("no answer within %v", LookMost))
	l.begin(s, time.Now())
	targets, err := s.Look(bounded, names)
	l.begin(s, time.Time{})
	cancel()
	s.looked = time.Now()
	var keys []string
	for _, t := range targets {
		keys = append(keys, t.Key)
		if ctx.Err() == nil {
			l.keep(ctx, s, t, told)
		}
	}
	if err == nil || errors.Is(err, ErrBeside) {
		l.Core.Keep(s.kind, names, keys)
	}
	for _, kind := range l.Core.Freed() {
		l.Changed(kind, "")
	}
	return err
}

// keep does for one target what is to be done.
func (l *Loop) keep(ctx context.Context, s *source, t Target, told bool) {
	why, drifted := l.decide(t)
	if drifted {
		l.told(Deed{Target: t, What: ByOthers})
	}
	if why == None {
		if finding := l.Core.News(t.Key); finding != "" {
			l.Log.Warn("limits not as planned", "target", t.Name, "plan", t.Plan, "error", finding)
			what := NotDone
			if l.Core.LeavesAlone(t.Key) {
				what = GaveWay
			}
			l.told(Deed{Target: t, What: what, Finding: finding})
		}
		return
	}
	if !told && why != Again && !l.comes(ctx, s) {
		s.missed = true
		l.Core.Missed()
	}
	bounded, cancel := context.WithTimeoutCause(ctx, PutMost, fmt.Errorf("not done within %v", PutMost))
	began := time.Now()
	l.begin(s, began)
	err := s.Put(bounded, t.Key)
	l.begin(s, time.Time{})
	l.Core.Applied(time.Since(began))
	cancel()
	if ctx.Err() != nil && err != nil {
		return // weir ends; the next one looks again
	}
	if errors.Is(err, ErrEnded) { // no plan has failed
		_, name, _ := strings.Cut(t.Key, ":")
		l.Core.Ended(s.kind, name)
		return
	}
	l.Core.Done(time.Now(), t.Key, err)
	if err != nil {
		if finding := l.Core.News(t.Key); finding != "" { // the next attempts fail for the same reason
			l.told(Deed{Target: t, What: NotDone, Why: why, Finding: finding})
		}
		l.Log.Warn("limits not set", "target", t.Name, "plan", t.Plan, "why", string(why), "error", err)
		return
	}
	what, says := Put, "limits set"
	if t.Plan == NoPlan {
		what, says = TakenOff, "limits removed"
	}
	l.told(Deed{Target: t, What: what, Why: why})
	l.Log.Info(says, "target", t.Name, "plan", t.Plan, "why", string(why))
}

// comes reports whether an event comes soon after a look: it may have been on its way when the clock had a source
// looked at. It waits once for all targets of the look: they have no limits meanwhile.
func (l *Loop) comes(ctx context.Context, s *source) bool {
	for deadline := s.looked.Add(eventMost); ; {
		if l.waits(s) || ctx.Err() != nil {
			return true
		}
		if !time.Now().Before(deadline) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
}

// earliest is the first of some times; zero ones do not count.
func earliest(all ...time.Time) (first time.Time) {
	for _, at := range all {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
