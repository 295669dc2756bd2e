package routes

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/stream"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/look/watch"
)

const (
	// framesMost is how many readings wait for a client at most. One that is slower is sent away.
	framesMost = 4
	// sampleMost bounds one reading.
	sampleMost = 10 * time.Second
)

// A beside is what the agent knows of groups beside their counters, by their paths.
type beside struct {
	version string
	plans   map[string]string
	held    map[string]agent.Held
}

func besideOf(s agent.Status, version string) beside {
	b := beside{version, map[string]string{}, map[string]agent.Held{}}
	for _, t := range s.Targets {
		if t.Group == "" || t.Plan == reconcile.NoPlan {
			continue
		}
		b.plans[t.Group] = t.Plan
		if h := s.Held[t.Key]; h.State == held.Held || h.State == held.NotHeld || h.Text != "" {
			b.held[t.Group] = h
		}
	}
	return b
}

func (b beside) top() api.TopBeside {
	return api.TopBeside{Source: api.TopSource{From: api.FromWeird, Version: b.version}, Plans: b.plans, Held: func(path string) *api.AgentHeld {
		h, known := b.held[path]
		if !known {
			return nil
		}
		doc := api.HeldOf(h)
		return &doc
	}}
}

// same reports whether the same is known of a group. What was measured last is told with the group's next change.
func (b beside) same(was beside) func(path string) bool {
	return func(path string) bool {
		now, before := b.held[path], was.held[path]
		return b.plans[path] == was.plans[path] && now.State == before.State && now.Since.Equal(before.Since) && now.Finding == before.Finding
	}
}

// A frame is what all who follow get at one time.
type frame struct {
	api.TopFrame
	beside  beside
	changes [][]byte // the events for who has the frame before
	trouble []byte   // why nothing could be read; the rest is empty
}

// A topFeed reads for its followers, once for all of them.
type topFeed struct {
	followers[*frame]
	agent   Agent
	options Options
	last    *frame // nil: nothing was read since somebody follows
}

func newTopFeed(a Agent, o Options) *topFeed {
	return &topFeed{followers: newFollowers[*frame](framesMost), agent: a, options: o}
}

// follow adds a follower. It gets the last frame, and each new one.
func (f *topFeed) follow() (frames chan *frame, ok bool) {
	return f.add(func(frames chan *frame, _ bool) {
		if f.last != nil {
			frames <- f.last
		}
	})
}

// followed reports whether there are followers. Without any nothing is kept for them.
func (f *topFeed) followed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		f.last = nil
	}
	return len(f.all) > 0
}

// run reads each second until the context ends, while somebody follows.
func (f *topFeed) run(ctx context.Context) {
	f.followers.run(ctx, stream.Every, func(tick <-chan time.Time) {
		var before *frame
		for f.followed() {
			next := f.read(ctx, before)
			if ctx.Err() != nil {
				return
			}
			if next.trouble != nil || before != nil || f.recent(next) {
				f.send(next)
			}
			if before = next; next.trouble != nil {
				before = nil
			}
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
		}
	})
}

// recent reports whether the rates of a frame are about those of the last second. The first one's can be over the
// minutes in which nobody followed: it is not sent.
func (f *topFeed) recent(one *frame) bool {
	w := one.Snapshot.Window
	return w > stream.Every/2 && w < 3*stream.Every/2
}

// read makes the next frame.
func (f *topFeed) read(ctx context.Context, before *frame) *frame {
	ctx, cancel := context.WithTimeoutCause(ctx, sampleMost, fmt.Errorf("not done within %v", sampleMost))
	defer cancel()
	var seen *watch.Snapshot
	if before != nil {
		seen = before.Snapshot
	}
	s, err := f.agent.Newer(ctx, seen)
	if err != nil {
		text, _ := rawtext.Marshal(api.ErrorOf(f.options.Spell(err))) // it is text
		return &frame{trouble: text}
	}
	b := besideOf(f.agent.Status(), f.options.Version)
	next := &frame{TopFrame: api.TopFrame{Snapshot: s, Beside: b.top()}, beside: b}
	if before != nil {
		next.Same = b.same(before.beside)
		next.Events(seen, func(text []byte) bool {
			next.changes = append(next.changes, text)
			return true
		})
	}
	return next
}

// send gives a frame to all followers.
func (f *topFeed) send(next *frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last = next; next.trouble != nil {
		f.last = nil
	}
	f.tell(next)
}

// follow answers with the stream of what groups do.
func (a *API) follow(w http.ResponseWriter, r *http.Request) {
	knows := false // the client has the frame before
	answer(w, r, "what groups do", a.groups, func(write write, next *frame) bool {
		event := func(text []byte) bool { return write("event: %s\ndata: %s\n\n", api.TopEventName, text) }
		switch {
		case next.trouble != nil:
			knows = false
			return write("event: trouble\ndata: %s\n\n", next.trouble)
		case !knows:
			knows = true
			return next.Events(nil, event)
		}
		for _, text := range next.changes {
			if !event(text) {
				return false
			}
		}
		return true
	})
}
