package routes

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/rawtext"
)

const (
	// followersMost bounds the clients of Events.
	followersMost = 16
	// queueMost is how many events wait for a client at most. One that is slower is sent away.
	queueMost = 1024
	// lookEvery is how often changes are looked for, while somebody follows them.
	lookEvery = 250 * time.Millisecond
	// quietMost is after what time without events a client is told that weird lives.
	quietMost = 15 * time.Second
	// writeMost bounds one write to a client.
	writeMost = 5 * time.Second
	// followMost is how long one request follows events. The client asks again then.
	followMost = time.Hour
)

// A feed tells its followers what has changed of targets.
type feed struct {
	agent Agent

	mu        sync.Mutex
	followers map[chan []byte]bool
	was       map[string]state // what the followers know, by key
	wake      chan struct{}
}

func newFeed(a Agent) *feed {
	return &feed{agent: a, followers: map[chan []byte]bool{}, wake: make(chan struct{}, 1)}
}

// follow adds a follower; false: there are too many. It is told of all that changes from now on. Its
// channel is closed if it is too slow, or when weird ends.
func (f *feed) follow() (events chan []byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.followers) >= followersMost {
		return nil, false
	}
	if len(f.followers) == 0 {
		f.was = statesOf(f.agent.Status())
	}
	events = make(chan []byte, queueMost)
	f.followers[events] = true
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return events, true
}

// leave ends following.
func (f *feed) leave(events chan []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followers, events)
}

func (f *feed) followed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.followers) > 0
}

// run looks for changes until the context ends, while somebody follows.
func (f *feed) run(ctx context.Context) {
	defer f.end()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if !f.followed() {
			tick.Stop()
			select {
			case <-ctx.Done():
				return
			case <-f.wake:
			}
			tick.Reset(lookEvery)
		}
		for f.followed() {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			f.look()
		}
	}
}

// end sends all followers away.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for events := range f.followers {
		close(events)
		delete(f.followers, events)
	}
}

// A state is what an event tells of a target.
type state struct{ target, plan, state, held, finding string }

func statesOf(s agent.Status) map[string]state {
	all := make(map[string]state, len(s.Targets))
	for _, t := range s.Targets {
		all[t.Key] = state{t.Name, t.Plan, string(t.State), string(s.Held[t.Key].State), t.Finding}
	}
	return all
}

func changed(was, is map[string]state) (events []api.AgentEvent) {
	for key, s := range is {
		if was[key] != s {
			events = append(events, api.AgentEventOf(s.target, s.plan, s.state, s.held, s.finding, false))
		}
	}
	for key, s := range was {
		if _, there := is[key]; !there {
			events = append(events, api.AgentEventOf(s.target, s.plan, s.state, s.held, s.finding, true))
		}
	}
	return events
}

// look tells all followers what has changed. It waits for none.
func (f *feed) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := statesOf(f.agent.Status())
	all := changed(f.was, is)
	f.was = is
	for _, e := range all {
		text, err := rawtext.Marshal(e)
		if err != nil {
			continue // it is text and times
		}
		for events := range f.followers {
			select {
			case events <- text:
			default:
				close(events)
				delete(f.followers, events)
			}
		}
	}
}

// events answers with the stream of what changes.
func (a *API) events(w http.ResponseWriter, r *http.Request) {
	if !mayFollow(w, r) {
		return
	}
	events, ok := a.feed.follow()
	if !ok {
		tooMany(w, "events")
		return
	}
	defer a.feed.leave(events)
	ctx, write, cancel := streamTo(w, r)
	defer cancel()
	if !write(": weird tells of changes\n\n") {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case text, open := <-events:
			if !open || !write("event: target\ndata: %s\n\n", text) {
				return
			}
		case <-time.After(quietMost):
			if !write(": weird lives\n\n") {
				return
			}
		}
	}
}

// mayFollow refuses a request for a stream that is none.
func mayFollow(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		health.Answer(w, http.StatusMethodNotAllowed, api.ErrorOf(fmt.Errorf("%s %s: the method is GET", r.Method, r.URL.Path)))
		return false
	}
	if _, err := queryOf(r, nil); err != nil {
		health.Refuse(w, err)
		return false
	}
	return true
}

func tooMany(w http.ResponseWriter, what string) {
	w.Header().Set("Retry-After", "5")
	health.Answer(w, http.StatusServiceUnavailable, api.ErrorOf(fmt.Errorf("%d clients follow %s already, and more cannot", followersMost, what)))
}

// streamTo begins a stream of server-sent events (HTML standard, 9.2). write reports whether the client takes it;
// cancel ends the context, which ends after followMost too.
func streamTo(w http.ResponseWriter, r *http.Request) (ctx context.Context, write func(format string, args ...any) bool, cancel context.CancelFunc) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	ctx, cancel = context.WithTimeout(r.Context(), followMost)
	return ctx, func(format string, args ...any) bool {
		if control.SetWriteDeadline(time.Now().Add(writeMost)) != nil {
			return false
		}
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && control.Flush() == nil
	}, cancel
}
