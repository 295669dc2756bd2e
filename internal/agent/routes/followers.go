package routes

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/api"
)

const (
	// followersMost bounds the clients of each stream.
	followersMost = 16
	// quietMost is after what time in which nothing is told a client is told that weird lives.
	quietMost = 15 * time.Second
	// writeMost bounds one write to a client.
	writeMost = 5 * time.Second
	// followMost is how long one request follows. The client asks again then.
	followMost = time.Hour
)

// Followers are told the same, each by a bounded queue.
type followers[T any] struct {
	queueMost int // how much waits for one at most. One that is slower is sent away

	mu   sync.Mutex
	all  map[chan T]bool
	wake chan struct{}
}

func newFollowers[T any](queueMost int) followers[T] {
	return followers[T]{queueMost: queueMost, all: map[chan T]bool{}, wake: make(chan struct{}, 1)}
}

// add adds one; false: there are too many. Its queue is closed if it is too slow, or when weird ends. begin is called
// before it can be told anything, with the lock; first says that it is the only one.
func (f *followers[T]) add(begin func(queue chan T, first bool)) (queue chan T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) >= followersMost {
		return nil, false
	}
	queue = make(chan T, f.queueMost)
	begin(queue, len(f.all) == 0)
	f.all[queue] = true
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return queue, true
}

// leave ends following.
func (f *followers[T]) leave(queue chan T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, queue)
}

// followed reports whether there are any.
func (f *followers[T]) followed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all) > 0
}

// tell tells all, and sends those away whose queues are full. It waits for none. The caller has the lock.
func (f *followers[T]) tell(one T) {
	for queue := range f.all {
		select {
		case queue <- one:
		default:
			close(queue)
			delete(f.all, queue)
		}
	}
}

// end sends all away.
func (f *followers[T]) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for queue := range f.all {
		close(queue)
		delete(f.all, queue)
	}
}

// run has work done while there are any, until the context ends. work returns when there are none.
func (f *followers[T]) run(ctx context.Context, every time.Duration, work func(tick <-chan time.Time)) {
	defer f.end()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		if !f.followed() {
			tick.Stop()
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
			}
			tick.Reset(every)
		}
		work(tick.C)
	}
}

// A write writes to a client, and reports whether it takes that.
type write func(format string, args ...any) bool

// A feed has followers.
type feed[T any] interface {
	follow() (queue chan T, ok bool)
	leave(queue chan T)
}

// answer answers with a stream of server-sent events (HTML standard, 9.2) of what a feed has. each writes one of them.
func answer[T any](w http.ResponseWriter, r *http.Request, what string, from feed[T], each func(write, T) bool) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		health.Answer(w, http.StatusMethodNotAllowed, api.ErrorOf(fmt.Errorf("%s %s: the method is GET", r.Method, r.URL.Path)))
		return
	}
	if _, err := queryOf(r, nil); err != nil {
		health.Refuse(w, err)
		return
	}
	queue, ok := from.follow()
	if !ok {
		w.Header().Set("Retry-After", "5")
		health.Answer(w, http.StatusServiceUnavailable, api.ErrorOf(fmt.Errorf("%d clients follow %s already, and more cannot", followersMost, what)))
		return
	}
	defer from.leave(queue)
	ctx, cancel := context.WithTimeout(r.Context(), followMost)
	defer cancel()
	write := writeTo(w)
	if !write(": weird tells of %s\n\n", what) {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case one, open := <-queue:
			if !open || !each(write, one) {
				return
			}
		case <-time.After(quietMost):
			if !write(": weird lives\n\n") {
				return
			}
		}
	}
}

// writeTo begins a stream.
func writeTo(w http.ResponseWriter) write {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	return func(format string, args ...any) bool {
		if control.SetWriteDeadline(time.Now().Add(writeMost)) != nil {
			return false
		}
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && control.Flush() == nil
	}
}
