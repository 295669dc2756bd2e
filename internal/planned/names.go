package planned

import (
	"context"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/plans"
)

// How often it is looked up which group has which plan, and how long that may take.
const namesEvery, namesMost = 30 * time.Second, 10 * time.Second

// namesPatience is how long Wanted waits for that.
const namesPatience = time.Second

// Names are the plans of groups, by their paths, for views that look each second. They are looked up
// beside that, now and then. Engines are asked for their containers only if there are plans.
type Names struct {
	open func() (*host.Host, error)
	read plans.Reader
	ctx  context.Context // ends a look-up
	end  context.CancelFunc

	mu    sync.Mutex
	names map[string]string
	asked time.Time
	done  chan struct{} // is closed when the look-up ends; nil: there was none
	work  sync.WaitGroup
}

// NewNames makes Names. open opens the host anew for each look-up. Close ends its use.
func NewNames(open func() (*host.Host, error), read plans.Reader) *Names {
	n := &Names{open: open, read: read}
	n.ctx, n.end = context.WithCancel(context.Background())
	return n
}

// Close ends a look-up that is under way, and waits for it.
func (n *Names) Close() {
	n.end() // an engine that hangs is not waited for
	n.Wait()
}

// Wait waits for a look-up that is under way.
func (n *Names) Wait() { n.work.Wait() }

// Now is what is known.
func (n *Names) Now() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names
}

// Refresh looks them up anew if that is due, and does not wait for it.
func (n *Names) Refresh(s *watch.Snapshot) (done <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.done != nil {
		select {
		case <-n.done:
			if time.Since(n.asked) < namesEvery {
				return n.done
			}
		default:
			return n.done // it is under way
		}
	}
	over := make(chan struct{})
	n.asked, n.done = time.Now(), over
	n.work.Go(func() {
		defer close(over)
		names := n.find(s)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.names = names
	})
	return over
}

// Wanted is what is known after a moment.
func (n *Names) Wanted(ctx context.Context, s *watch.Snapshot) map[string]string {
	select {
	case <-n.Refresh(s):
	case <-ctx.Done():
	case <-time.After(namesPatience):
	}
	return n.Now()
}

// find asks for the plans of all groups. What cannot be told is left out: a question about one target
// says why.
func (n *Names) find(s *watch.Snapshot) map[string]string {
	names := map[string]string{}
	h, err := n.open()
	if err != nil {
		return names
	}
	defer func() { _ = h.Close() }() // it was only read
	ctx, cancel := context.WithTimeout(n.ctx, namesMost)
	defer cancel()
	shown := limiting.Shown{}
	for _, g := range s.Groups {
		shown.Groups = append(shown.Groups, limiting.Group{Target: g.Target, Path: g.Path, Owner: g.Owner})
	}
	_ = Mark(ctx, h, n.read, &shown)
	for _, g := range shown.Groups {
		if g.Plan != nil {
			names[g.Path] = g.Plan.Name
		}
	}
	return names
}
