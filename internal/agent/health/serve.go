package health

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/base/seats"
	"github.com/weir-io/weir/internal/fault"
)

// Route is where the answer is: GET /health.
const Route = "/health"

// Bounds of what a client can take of the daemon.
const (
	clientsMost = 64
	headersMost = 8 << 10 // bytes
	requestMost = 5 * time.Second
	idleMost    = 30 * time.Second
	// endMost is how long answers that are under way may take when the daemon ends.
	endMost = 2 * time.Second
)

// StatusRoute is where a daemon with a status answers: GET /status.
const StatusRoute = "/status"

// CountsRoute is where such a daemon answers what it has counted: GET /counts.
const CountsRoute = "/counts"

// Documents make documents, by their paths.
type Documents map[string]func() any

// Serve answers until the context ends, which is no error, and closes the listener. more are documents
// beside that of Route.
func Serve(ctx context.Context, l *Listener, version string, more Documents) error {
	return ServeHandler(ctx, l, handler(version, time.Now(), more))
}

// ServeHandler is Serve with a handler for all paths. Of each request the remote address is the
// user, as "uid 1000". A handler that answers for longer than usual moves the deadline of writing
// (http.ResponseController), and ends when its request's context does: when weird ends, too.
func ServeHandler(ctx context.Context, l *Listener, h http.Handler) error {
	ending, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, end)() // of answers that go on and on
	server := newServer(h)
	server.BaseContext = func(net.Listener) context.Context { return ending }
	return run(ctx, server, seats.Limit(server, l, clientsMost), l.path)
}

func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: requestMost,
		ReadTimeout:       requestMost,
		WriteTimeout:      requestMost,
		IdleTimeout:       idleMost,
		MaxHeaderBytes:    headersMost,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // what a client gets wrong is its own affair
	}
}

// handler answers the questions that there are.
func handler(version string, began time.Time, more Documents) http.Handler {
	documents := Documents{Route: func() any { return api.HealthOf(version, os.Getpid(), time.Since(began)) }}
	maps.Copy(documents, more)
	there := Route + " is"
	if paths := slices.Sorted(maps.Keys(documents)); len(paths) > 1 {
		last := len(paths) - 1
		there = strings.Join(paths[:last], ", ") + " and " + paths[last] + " are"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document := documents[r.URL.Path]
		switch {
		case document == nil:
			Refuse(w, &unknown{r.URL.Path, there})
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			refuseMethod(w, r)
		default:
			Answer(w, http.StatusOK, document())
		}
	})
}

// An unknown path.
type unknown struct{ path, there string }

func (e *unknown) Error() string { return fmt.Sprintf("%q: nothing is there; %s", e.path, e.there) }

// Class makes it fault.NotFound.
func (*unknown) Class() fault.Class { return fault.NotFound }

func refuseMethod(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Allow", "GET, HEAD")
	Answer(w, http.StatusMethodNotAllowed, api.ErrorOf(fmt.Errorf("%s %s: this can only be read (GET)", r.Method, r.URL.Path)))
}

// Refuse answers with an error, and with the status of its class.
func Refuse(w http.ResponseWriter, err error) {
	Answer(w, fault.ClassOf(err).HTTPStatus(), api.ErrorOf(err))
}

// Answer answers with a document.
func Answer(w http.ResponseWriter, status int, document any) {
	text, err := rawtext.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client may have gone
}
