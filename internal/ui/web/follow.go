package web

import (
	"context"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/top"
)

// queued is how many events wait for a client. One that takes longer is dropped: it comes back, and
// begins anew.
const queued = 4

// stays is for how long the list shows a group without a limit after its last I/O, so that the list
// keeps still.
const stays = 30 * time.Second

// A frame is what all clients get at one time: a snapshot, and what has changed in the list.
type frame struct {
	snapshot *watch.Snapshot
	measured measured
	list     list
	changes  []byte // the event for those that have the frame before
	err      error  // nothing could be read; the rest is empty
}

// A measured has what was measured of groups while pages are live, by the groups' ids. It begins anew
// when a page is live again after none was.
type measured map[string]held.Verdict

// A following reads for clients as long as there are any, once for all of them.
type following struct {
	page *Page

	mu      sync.Mutex // of what follows
	clients map[chan *frame]bool
	last    *frame // nil: nothing was read yet
	stop    context.CancelFunc
	closed  bool
	work    sync.WaitGroup
}

// join makes a client. It gets the last frame, then each new one; the channel is closed if the client
// is too slow or the page ends. nil: there are as many as there may be. leave ends it.
func (f *following) join() (frames chan *frame, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.clients) >= streamsMost {
		return nil, nil
	}
	frames = make(chan *frame, queued)
	if f.last != nil {
		frames <- f.last
	}
	if f.clients == nil {
		f.clients = map[chan *frame]bool{}
	}
	f.clients[frames] = true
	if f.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		f.stop = stop
		f.work.Add(1)
		go f.run(ctx)
	}
	return frames, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(frames)
	}
}

// drop ends a client, and the reading with the last one.
func (f *following) drop(frames chan *frame) {
	if !f.clients[frames] {
		return
	}
	delete(f.clients, frames)
	close(frames)
	if len(f.clients) == 0 {
		f.end()
	}
}

// end stops the reading. The next client begins anew.
func (f *following) end() {
	if f.stop != nil {
		f.stop()
		f.stop, f.last = nil, nil
	}
}

// close ends all clients, and waits for the reading.
func (f *following) close() {
	f.mu.Lock()
	f.closed = true
	for c := range f.clients {
		f.drop(c)
	}
	f.end()
	f.mu.Unlock()
	f.work.Wait()
}

// now is the snapshot that clients have; nil: nobody follows, or nothing has rates yet.
func (f *following) now() *watch.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil || f.last.err != nil || f.last.snapshot.Window == 0 {
		return nil
	}
	return f.last.snapshot
}

// measured is what was measured; nil: nobody follows.
func (f *following) measured() measured {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		return nil
	}
	return f.last.measured
}

// run reads until nobody follows.
func (f *following) run(ctx context.Context) {
	defer f.work.Done()
	tick := time.NewTicker(f.page.o.Every)
	defer tick.Stop()
	lately, judge := moved{}, top.NewMeasuring()
	var before *frame
	for {
		next := f.read(ctx, before, lately, judge)
		if ctx.Err() != nil {
			return
		}
		f.send(ctx, next)
		if before = next; next.err != nil {
			before = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// read makes the next frame.
func (f *following) read(ctx context.Context, before *frame, lately moved, judge *top.Measuring) *frame {
	var seen *watch.Snapshot
	if before != nil {
		seen = before.snapshot
	}
	s, err := f.page.o.Source.Newer(ctx, seen, f.page.o.Every)
	if err != nil {
		return &frame{err: err, changes: trouble(err)}
	}
	takes := lately.takes(s)
	judge.Look(s, takes)
	next := &frame{snapshot: s, measured: measured{}, list: f.page.listOf(s, takes, f.page.o.Plans.Now(), nil)}
	for _, g := range s.Groups {
		if g.Limited() && takes(g) {
			next.measured[idOf(g.Path)] = judge.Of(g.Path)
		}
	}
	next.list.measure(next.measured)
	next.changes = next.list.since(before)
	return next
}

// moved is when groups were last to be shown.
type moved map[string]time.Time

// takes says which groups of a snapshot the list has: those that weir top shows, and those that it
// showed a moment ago.
func (m moved) takes(s *watch.Snapshot) func(*watch.Group) bool {
	usual := top.Options{}
	for _, g := range s.Groups {
		if usual.Takes(g) {
			m[g.Path] = s.At
		}
	}
	for path, at := range m {
		if d := s.At.Sub(at); d > stays || d < 0 {
			delete(m, path)
		}
	}
	return func(g *watch.Group) bool { _, is := m[g.Path]; return is }
}

// send gives a frame to all clients, and drops those that have not taken the former ones.
func (f *following) send(ctx context.Context, next *frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return // the last client has gone, and another may have begun anew
	}
	if next.err == nil {
		f.page.o.Plans.Refresh(next.snapshot)
	}
	f.last = next
	for c := range f.clients {
		select {
		case c <- next:
		default:
			f.drop(c)
		}
	}
}
