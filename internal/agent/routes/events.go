package routes

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/rawtext"
)

const (
	// eventsMost is how many events wait for a client at most.
	eventsMost = 1024
	// lookEvery is how often changes are looked for, while somebody follows them.
	lookEvery = 250 * time.Millisecond
)

// A changeFeed tells its followers what has changed of targets.
type changeFeed struct {
	followers[[]byte]
	agent Agent
	was   map[string]state // what the followers know, by key
}

func newChangeFeed(a Agent) *changeFeed {
	return &changeFeed{followers: newFollowers[[]byte](eventsMost), agent: a}
}

// follow adds a follower, which is told of all that changes from now on.
func (f *changeFeed) follow() (events chan []byte, ok bool) {
	return f.add(func(_ chan []byte, first bool) {
		if first {
			f.was = statesOf(f.agent.Status())
		}
	})
}

// run looks for changes until the context ends, while somebody follows.
func (f *changeFeed) run(ctx context.Context) {
	f.followers.run(ctx, lookEvery, func(tick <-chan time.Time) {
		for f.followed() {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			f.look()
		}
	})
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

// look tells all followers what has changed.
func (f *changeFeed) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := statesOf(f.agent.Status())
	all := changed(f.was, is)
	f.was = is
	for _, e := range all {
		if text, err := rawtext.Marshal(e); err == nil { // it is text and times
			f.tell(text)
		}
	}
}

// events answers with the stream of what changes.
func (a *API) events(w http.ResponseWriter, r *http.Request) {
	answer(w, r, "changes", a.changes, func(write write, text []byte) bool {
		return write("event: target\ndata: %s\n\n", text)
	})
}
