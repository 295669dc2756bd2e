package main

import (
	"context"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/agent/metrics"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// recordEvery is the finest level of history.
const recordEvery = time.Second

// A recording keeps what a feed reads, a point each second.
type recording struct {
	out *cli.Out
	r   *history.Recorder

	mu     sync.Mutex
	failed string
}

// add keeps a snapshot. What others have read between two of its own is a part of the second one.
func (r *recording) add(s *watch.Snapshot, own bool) {
	if own {
		r.tell(r.r.Add(s))
	} else {
		r.r.Beside(s)
	}
}

// tell says once what fails, until something else does or nothing does any more.
func (r *recording) tell(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == r.failed:
		return
	case err != nil:
		r.out.Say("history: %v; weird tries again each second", err)
	default:
		r.out.Say("history: weird records again")
	}
	r.failed = now
}

// run has a feed read each second, until the context ends.
func (r *recording) run(ctx context.Context, feed *metrics.Feed) {
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	for {
		if _, err := feed.Read(ctx); err != nil && ctx.Err() == nil {
			r.tell(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
