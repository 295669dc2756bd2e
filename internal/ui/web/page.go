package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/planned"
)

// A Source has the snapshots that are shown: metrics.Feed.
type Source interface {
	// Newer returns a snapshot that is not older than age and is another one than seen. It reads if
	// there is none.
	Newer(ctx context.Context, seen *watch.Snapshot, age time.Duration) (*watch.Snapshot, error)
}

// Options say what the page shows, and to whom.
type Options struct {
	Source Source
	// Open opens the host anew, for one question about it.
	Open func() (*host.Host, error)
	// Plans are the names of groups' plans.
	Plans *planned.Names
	// History is the directory with what weird has recorded; empty: nothing is.
	History string
	Name    string // of the host; a client may call it so
	Version string // of weir; an open page loads itself anew when it differs
	// AnyName has the page answer under any name. It is for servers whose clients say who they are,
	// by a password or a certificate, because a name of others is of no use to attackers there.
	AnyName bool
	// Tracer traces groups when somebody asks for that; nil: nothing does.
	Tracer Tracer
	Every  time.Duration // between two readings; 0: a second
}

// Bounds of what clients can take of the daemon. All of them share one reading.
const (
	every        = time.Second
	streamsMost  = 16
	rowsMost     = 2000             // of a list
	sendMost     = 5 * time.Second  // for one event
	questionMost = 20 * time.Second // to answer weir why
	waitMost     = 3 * time.Second  // for the question before, or for another chart
	chartsMost   = 2                // that are made at once
)

// A Page answers. Close ends its use.
type Page struct {
	o       Options
	follow  *following
	tracing *tracing
	asking  chan struct{} // has room for one question
	reading chan struct{} // has room for chartsMost readings of history
	end     context.CancelFunc
}

// New makes the page.
func New(o Options) *Page {
	if o.Every == 0 {
		o.Every = every
	}
	p := &Page{o: o, asking: make(chan struct{}, 1), reading: make(chan struct{}, chartsMost)}
	ctx, end := context.WithCancel(context.Background())
	p.tracing, p.end = newTracing(ctx, o.Tracer), end
	p.follow = &following{page: p}
	return p
}

// Close ends the streams, and waits for what works for them.
func (p *Page) Close() {
	p.end()
	p.follow.close()
	p.tracing.wait()
}

// ServeHTTP answers.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.guard(w, r) {
		return
	}
	switch r.URL.Path {
	case "/":
		p.list(w, r)
	case "/group":
		p.group(w, r)
	case "/history":
		p.history(w, r)
	case "/stream":
		p.stream(w, r)
	default:
		if !asset(w, r) {
			p.refuse(w, http.StatusNotFound, fmt.Sprintf("%s: nothing is there.", cut(r.URL.Path)))
		}
	}
}

// snapshot returns what is now, for one page. The first reading of a watcher has no rates: then
// there is a second one.
func (p *Page) snapshot(ctx context.Context) (*watch.Snapshot, error) {
	if s := p.follow.now(); s != nil {
		return s, nil
	}
	s, err := p.o.Source.Newer(ctx, nil, p.o.Every)
	if err != nil || s.Window > 0 {
		return s, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(p.o.Every):
	}
	return p.o.Source.Newer(ctx, s, p.o.Every)
}
