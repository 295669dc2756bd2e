package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/look/trace"
)

// A Tracer measures where the time of a group's reads, writes and fsyncs goes, as weir trace does.
type Tracer interface {
	// Hindrance is why nothing can be traced here, as far as that is known without a try; nil: nothing
	// is known.
	Hindrance() error
	// Trace traces the group of a path for a time. An error that it cannot is a *bpf.Unavailable.
	Trace(ctx context.Context, path string, window time.Duration) (trace.Traced, error)
}

// Bounds of what clients can start by a trace. It loads programs into the kernel, and as long as they
// are there each read and write of the group takes longer. So there is one trace at a time for all
// clients, and none for three quarters of the time.
const (
	traceFor     = 5 * time.Second
	traceRest    = 15 * time.Second // after one, before the next
	traceKept    = 10 * time.Minute // for how long a result is shown
	traceMost    = 20 * time.Second // for all of it
	traceWaiters = 8                // clients that wait for one
)

// A tracing measures for clients: one group at a time, once for all that ask meanwhile.
type tracing struct {
	tracer Tracer // nil: weird was not told to trace
	ctx    context.Context
	now    func() time.Time
	// token is in links that start a trace. A page of another origin can lead a browser to an address,
	// but cannot know it: it cannot read this page.
	token string
	work  sync.WaitGroup

	mu      sync.Mutex
	running *measurement // nil: none
	waiting int          // clients
	last    *measurement // nil: there was none
}

// A measurement is one trace. What is in it is known when done is closed.
type measurement struct {
	path   string
	done   chan struct{}
	ended  time.Time
	traced trace.Traced
	err    error
}

func newTracing(ctx context.Context, tracer Tracer) *tracing {
	return &tracing{tracer: tracer, ctx: ctx, now: time.Now, token: rand.Text()}
}

// hindrance is why no trace can be started; nil: nothing is known.
func (t *tracing) hindrance() error {
	if t.tracer == nil {
		return errNoTracer
	}
	return t.tracer.Hindrance()
}

var (
	errNoTracer = errors.New("weird traces for this page only if it was started with --page-trace")
	errSlow     = fmt.Errorf("the trace took longer than %s; look again in a moment", traceMost)
)

// link is the address that starts a trace of a group.
func (t *tracing) link(path string) string {
	return linkTo(path, url.Values{"trace": {t.token}}) + "#trace"
}

// asked reports whether a request asks for a trace.
func (t *tracing) asked(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("trace") == t.token
}

// known is the last trace of a group, if it is not too old; nil: there is none.
func (t *tracing) known(path string) *measurement {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || t.last.path != path || t.now().Sub(t.last.ended) > traceKept {
		return nil
	}
	return t.last
}

// measure traces a group, or waits with others for what is under way, or has what has just ended.
func (t *tracing) measure(ctx context.Context, path string) (*measurement, error) {
	m, err := t.join(path)
	if err != nil {
		return nil, err
	}
	defer t.leave()
	ctx, cancel := context.WithTimeoutCause(ctx, traceMost, errSlow)
	defer cancel()
	select {
	case <-m.done:
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// join begins to wait for a measurement, which it starts if that may be. leave ends it.
func (t *tracing) join(path string) (*measurement, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.running
	rested := math.Inf(1)
	if t.last != nil {
		rested = t.now().Sub(t.last.ended).Seconds()
	}
	switch {
	case m != nil && m.path != path:
		return nil, fmt.Errorf("weird traces another group just now; ask again in %.0f s", (traceFor + traceRest).Seconds())
	case t.waiting >= traceWaiters:
		return nil, errBusy
	case m == nil && t.last != nil && t.last.path == path && rested < traceRest.Seconds():
		m = t.last
	case m == nil && rested < traceRest.Seconds():
		return nil, fmt.Errorf("weird has just traced another group, and rests, because a trace slows reads and writes a little; ask again in %.0f s", math.Ceil(traceRest.Seconds()-rested))
	case m == nil:
		m = t.start(path)
	}
	t.waiting++
	return m, nil
}

func (t *tracing) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
}

// start starts a measurement, which goes on when its clients leave: others can come.
func (t *tracing) start(path string) *measurement {
	m := &measurement{path: path, done: make(chan struct{})}
	t.running = m
	t.work.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, traceMost)
		defer cancel()
		m.traced, m.err = t.tracer.Trace(ctx, path, traceFor)
		t.mu.Lock()
		defer t.mu.Unlock()
		m.ended = t.now()
		t.running, t.last = nil, m
		close(m.done)
	})
	return m
}

// wait waits for a measurement that is under way. The page's context has ended.
func (t *tracing) wait() { t.work.Wait() }
