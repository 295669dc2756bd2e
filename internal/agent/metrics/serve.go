package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/seats"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/planned"
)

// Route is where the metrics are: GET /metrics has the groups with limits, and
// GET /metrics?groups=all all that did any I/O.
const Route = "/metrics"

// Address is where weird serves them unless told otherwise.
const Address = "127.0.0.1:9847"

// manyGroups is from how many groups on a page takes megabytes to make.
const manyGroups = 500

// Bounds of what a client can take of the daemon.
const (
	clientsMost = 64
	pagesMost   = 48       // answers of the page at one time
	scrapesMost = 12       // and of metrics: each has room, whatever the clients of the other do
	headersMost = 16 << 10 // bytes
	readMost    = 5 * time.Second
	writeMost   = 30 * time.Second
	idleMost    = 2 * time.Minute // Prometheus comes back with the same connection
	endMost     = 2 * time.Second
)

// Options say what to serve.
type Options struct {
	Feed    *Feed
	Version string
	// Config is the path of a file with TLS keys and users, in the format of Prometheus'
	// exporters (exporter-toolkit, "web configuration"); empty: neither.
	Config string
	// Agent asks weird run what it has counted; nil: nobody is asked.
	Agent func(context.Context) (api.AgentCounts, error)
	// Targets asks weird run for its targets; nil: nobody is asked.
	Targets func(context.Context) ([]api.AgentTarget, error)
	// Pacer asks weir's pacer what it has done, and waits no longer than most; nil: nobody is asked.
	Pacer func(most time.Duration) ([]pacer.Sum, error)
	// Plans are the names of groups' plans; nil: nobody can tell.
	Plans *planned.Names
	// Quotas are the host's; nil: nobody can read them.
	Quotas *Quotas
	// Page answers what is not for Prometheus; nil: nothing is there.
	Page http.Handler
}

// Serve answers until the context ends, which is no error, and closes the listener.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	server := &http.Server{
		Handler:           o.Handler(),
		ReadHeaderTimeout: readMost,
		ReadTimeout:       readMost,
		WriteTimeout:      writeMost,
		IdleTimeout:       idleMost,
		MaxHeaderBytes:    headersMost,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what a client gets wrong is its own affair
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	noSocket := false
	flags := &web.FlagConfig{WebListenAddresses: &[]string{l.Addr().String()}, WebSystemdSocket: &noSocket, WebConfigFile: &o.Config}
	ended := make(chan error, 1)
	go func() {
		ended <- web.Serve(seats.Limit(server, l, clientsMost), server, flags, slog.New(slog.DiscardHandler))
	}()
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve metrics at %s: %w", l.Addr(), err), closed(l.Close()))
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endMost)
	defer cancel()
	err := server.Shutdown(end) // it closes the listener
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if serving := <-ended; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	return err
}

// closed is no error for a listener that was closed before.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Handler answers GET /metrics, and has the page answer the rest.
func (o Options) Handler() http.Handler {
	scrapes := share(scrapesMost, o.scrape())
	if o.Page == nil {
		return scrapes
	}
	pages := share(pagesMost, o.Page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Route {
			pages.ServeHTTP(w, r)
			return
		}
		scrapes.ServeHTTP(w, r)
	})
}

// share bounds the answers of a handler at one time. Nobody waits for one to end: who waits would take a seat of others.
func share(most int, h http.Handler) http.Handler {
	room := make(chan struct{}, most)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			h.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, fmt.Sprintf("weird answers %d such questions already; ask again later", most), http.StatusServiceUnavailable)
		}
	})
}

// scrape answers GET /metrics.
func (o Options) scrape() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch groups := r.URL.Query().Get("groups"); {
		case r.URL.Path != Route:
			http.Error(w, fmt.Sprintf("%q: nothing is there; %s is", r.URL.Path, Route), http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, fmt.Sprintf("%s %s: this can only be read (GET)", r.Method, Route), http.StatusMethodNotAllowed)
		case groups != "" && groups != "limited" && groups != "all":
			http.Error(w, fmt.Sprintf("groups=%q: write limited or all", groups), http.StatusBadRequest)
		default:
			o.answer(w, r, groups == "all")
		}
	})
}

// agentMost and pacerMost bound the questions to weir run and to the pacer: a scrape is not to wait
// for them.
const agentMost, pacerMost = time.Second, time.Second

// counts are what weird run has counted; nil: it does not answer, as where it does not run.
func (o Options) counts(ctx context.Context) *api.AgentCounts {
	if o.Agent == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, agentMost)
	defer cancel()
	c, err := o.Agent(ctx)
	if err != nil {
		return nil
	}
	return &c
}

// sums are what the pacer has done, by the paths of groups; nil: there is none, or it does not answer.
func (o Options) sums(groups []*watch.Group) map[string]pacer.Sum {
	if o.Pacer == nil || !slices.ContainsFunc(groups, func(g *watch.Group) bool { return g.Paced != nil }) {
		return nil
	}
	all, err := o.Pacer(pacerMost)
	if err != nil {
		return nil
	}
	sums := make(map[string]pacer.Sum, len(all))
	for _, s := range all {
		sums[s.Limited.Path] = s
	}
	return sums
}

// answer reads, and writes the metrics.
func (o Options) answer(w http.ResponseWriter, r *http.Request, all bool) {
	s, held, err := o.Feed.Measured(r.Context())
	if err != nil {
		http.Error(w, "read cgroups: "+err.Error(), http.StatusInternalServerError)
		return
	}
	var quotas []quota.Status
	if o.Quotas != nil {
		quotas = o.Quotas.now(r.Context())
	}
	g := gathering{snapshot: s, measured: held, all: all, agent: o.counts(r.Context()), quotas: quotas, sums: o.sums(s.Groups), version: o.Version}
	if o.Plans != nil {
		g.plans = o.Plans.Wanted(r.Context(), s)
	}
	g.addTargets(o.targets(r.Context()))
	promhttp.HandlerFor(g, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	if len(s.Groups) > manyGroups {
		debug.FreeOSMemory() // the page took several times what weird needs until the next one
	}
}
