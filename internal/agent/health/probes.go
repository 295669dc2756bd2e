package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/weir-io/weir/internal/base/seats"

	"github.com/weir-io/weir/internal/api"
)

// The paths that Kubernetes' components answer probes at.
const (
	LiveRoute  = "/healthz"
	ReadyRoute = "/readyz"
)

// Probes say how a daemon is. Each returns nil, or why not.
type Probes struct {
	Live  func() error // it works
	Ready func() error // it can do what it is there for
}

// ServeProbes answers LiveRoute and ReadyRoute in HTTP until the context ends, which is no error, and
// closes the listener. Anybody who can connect may ask: the answers are "ok" and a reason why not.
func ServeProbes(ctx context.Context, l net.Listener, p Probes) error {
	server := newServer(p.handler())
	return run(ctx, server, seats.Limit(server, l, clientsMost), l.Addr().String())
}

func (p Probes) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask := map[string]func() error{LiveRoute: p.Live, ReadyRoute: p.Ready}[r.URL.Path]
		switch {
		case ask == nil:
			Refuse(w, &unknown{r.URL.Path, LiveRoute + " and " + ReadyRoute + " are"})
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			refuseMethod(w, r)
			return
		}
		if err := ask(); err != nil {
			Answer(w, http.StatusServiceUnavailable, api.ErrorOf(err))
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n")) // a client may have gone
	})
}

// run serves until the context ends.
func run(ctx context.Context, server *http.Server, l net.Listener, at string) error {
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("answer at %s: %w", at, err), l.Close())
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endMost)
	defer cancel()
	err := server.Shutdown(end) // it closes the listener
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // a client that does not read does not keep the daemon
	}
	if serving := <-ended; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	return err
}
