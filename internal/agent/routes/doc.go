// Package routes answers what programs ask weir's agent, over HTTP at unix sockets, in the documents
// of docs/json.md.
//
// There are two sockets, and the kernel checks who may connect to which: the one for reading has the
// group weir-read, and the one for changing the group weir. Rights by the sockets' modes need no code
// that could be wrong, and count supplementary groups; SO_PEERCRED has only the main group of a client.
// It names the user in the journal.
//
// Each request is bounded in size and time, and few are worked on at once, until their clients have the
// answers. Plans in requests are read one after the other. The agent waits for no client.
//
// One handler is for both sockets, and package health serves it. A follower, of events or of what groups do, has
// a bounded queue: one that is too slow is sent away. All who follow what groups do have one reading a second.
package routes

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/agent/stream"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
)

// Where the sockets are if nothing else is asked for, and whose they are.
const (
	Dir          = "/run/weird"
	ReadSocket   = "read.sock"
	ChangeSocket = "change.sock"
	ReadGroup    = "weir-read"
	ChangeGroup  = "weir"
)

// The paths.
const (
	Status = health.StatusRoute // ?target=NAME for one
	Health = health.Route
	Top    = "/top"
	Follow = stream.Route
	Plans  = "/plans"
	Check  = "/plans/check"
	Diff   = "/plans/diff"
	Log    = "/log" // ?target=NAME&since=TIME&most=NUMBER
	Events = "/events"
	Reload = "/reload"
)

// How many entries Log answers with.
const (
	LogUsual = 1000   // if nobody asks for another number
	LogMost  = 20_000 // at most: about as many as the journal has
)

const (
	// workersMost bounds the requests of one socket that are worked on at once, without those for Events:
	// whoever may only read takes no turn of those who may change.
	workersMost = 4
	// waitMost is how long a request waits for its turn.
	waitMost = 2 * time.Second
	// slowMost bounds a request that asks engines.
	slowMost = 20 * time.Second
	// marksMost bounds plans in a request, by planfile.Marks: to read them takes up to 20 MB.
	marksMost = 100_000
	// queryMost bounds what is asked, in bytes.
	queryMost = 4 << 10
)

// An Agent is what is asked: agent.Agent.
type Agent interface {
	Status() agent.Status
	Snapshot(ctx context.Context) (*watch.Snapshot, error)
	Newer(ctx context.Context, seen *watch.Snapshot) (*watch.Snapshot, error)
	Plans() *plans.Config
	Diff(ctx context.Context) (planned.Report, error)
	Log(q journal.Query) (journal.Log, error)
	ReloadFor(by string) error
}

// Options say how it is answered.
type Options struct {
	Version string
	// Spell puts an error into words for people; nil: its own are.
	Spell func(error) error
}

// An API answers for one agent, at any number of sockets.
type API struct {
	agent   Agent
	options Options
	began   time.Time
	changes *changeFeed
	groups  *topFeed
}

// New makes an API. Run has it tell of events.
func New(a Agent, o Options) *API {
	if o.Spell == nil {
		o.Spell = func(err error) error { return err }
	}
	return &API{agent: a, options: o, began: time.Now(), changes: newChangeFeed(a), groups: newTopFeed(a, o)}
}

// Run tells of events, and of what groups do, until the context ends.
func (a *API) Run(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { a.groups.run(ctx) })
	a.changes.run(ctx)
}

// Ask asks the daemon whose sockets are in a directory: at the one for reading, or, as a user who may connect only to the
// other, at that.
func Ask(ctx context.Context, dir, route string, into any) (err error) {
	for _, socket := range []string{ReadSocket, ChangeSocket} {
		if err = health.Ask(ctx, filepath.Join(dir, socket), route, into); !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return err
}

// errBusy is the answer to a request whose turn does not come.
var errBusy = errors.New("weird is busy with other requests; ask again later")

// turn waits for the turn of a request at a socket. done ends it.
func turn(r *http.Request, workers chan struct{}) (done func(), err error) {
	timer := time.NewTimer(waitMost)
	defer timer.Stop()
	select {
	case workers <- struct{}{}:
		return func() { <-workers }, nil
	case <-timer.C:
		return nil, errBusy
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// A denied request asks for a change at the socket for reading.
type denied struct{ what string }

func (e *denied) Error() string {
	return e.what + ": this socket is for reading; ask at " + ChangeSocket + ", which root and users in the group " + ChangeGroup + " can"
}

// Class makes it fault.Denied.
func (*denied) Class() fault.Class { return fault.Denied }
