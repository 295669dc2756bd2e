package routes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/targets"
)

// A route answers one path.
type route struct {
	method string
	change bool     // only at the socket for changing
	query  []string // the parameters that it takes
	answer func(ctx context.Context, q url.Values, body []byte, by string) (any, error)
	slow   bool // it asks engines
	plans  bool // its body has plans; one at a time is read
}

// turns are those of one socket's requests.
type turns struct{ workers, plans chan struct{} }

func (a *API) routes() map[string]route {
	return map[string]route{
		Health: {method: http.MethodGet, answer: a.health},
		Status: {method: http.MethodGet, query: []string{"target"}, answer: a.status},
		Top:    {method: http.MethodGet, answer: a.top, slow: true},
		Plans:  {method: http.MethodGet, answer: a.plans},
		Check:  {method: http.MethodPost, answer: a.check, plans: true},
		Diff:   {method: http.MethodGet, answer: a.diff, slow: true},
		Log:    {method: http.MethodGet, query: []string{"target", "since", "most"}, answer: a.log},
		Reload: {method: http.MethodPost, change: true, answer: a.reload},
	}
}

// Handler answers at a socket. change says whether it is the one for changing.
func (a *API) Handler(change bool) http.Handler {
	all, turns := a.routes(), turns{make(chan struct{}, workersMost), make(chan struct{}, 1)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		switch r.URL.Path {
		case Events:
			a.events(w, r)
			return
		case Follow:
			a.follow(w, r)
			return
		}
		one, known := all[r.URL.Path]
		switch {
		case !known:
			health.Refuse(w, &unknown{r.URL.Path})
		case r.Method != one.method && (r.Method != http.MethodHead || one.method != http.MethodGet):
			w.Header().Set("Allow", one.method)
			health.Answer(w, http.StatusMethodNotAllowed, api.ErrorOf(fmt.Errorf("%s %s: the method is %s", r.Method, r.URL.Path, one.method)))
		case one.change && !change:
			health.Refuse(w, &denied{r.Method + " " + r.URL.Path})
		default:
			a.serve(w, r, one, turns)
		}
	})
}

// serve answers a request that is allowed. It has its turn until the client has taken the answer: what is kept for slow
// clients is bounded, too.
func (a *API) serve(w http.ResponseWriter, r *http.Request, one route, t turns) {
	q, err := queryOf(r, one.query)
	if err != nil {
		health.Refuse(w, err)
		return
	}
	var body []byte
	if one.plans {
		done, err := turn(r, t.plans)
		if err != nil {
			busy(w, err)
			return
		}
		defer done()
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, plans.FileBytesMax+1)); err != nil {
			health.Refuse(w, fault.Misusef("read the request: %v", err))
			return
		}
	}
	done, err := turn(r, t.workers)
	if err != nil {
		busy(w, err)
		return
	}
	defer done()
	document, err := one.do(r, q, body)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeMost)) // a unix socket has deadlines
	if err != nil {
		health.Refuse(w, a.options.Spell(err))
		return
	}
	health.Answer(w, http.StatusOK, document)
}

// do makes the answer to a request.
func (one route) do(r *http.Request, q url.Values, body []byte) (any, error) {
	ctx := r.Context()
	if one.slow {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, slowMost, fmt.Errorf("not done within %v", slowMost))
		defer cancel()
	}
	document, err := one.answer(ctx, q, body, r.RemoteAddr)
	if errors.Is(err, context.DeadlineExceeded) && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return document, err
}

// busy says that a request's turn does not come.
func busy(w http.ResponseWriter, err error) {
	w.Header().Set("Retry-After", "1")
	health.Answer(w, http.StatusServiceUnavailable, api.ErrorOf(err))
}

// queryOf is what a request asks, each parameter once, and none that the route does not take.
func queryOf(r *http.Request, takes []string) (url.Values, error) {
	if len(r.URL.RawQuery) > queryMost {
		return nil, fault.Misusef("%s: the question is longer than %d bytes", r.URL.Path, queryMost)
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Misusef("%s: %v", r.URL.Path, err)
	}
	for name, values := range q {
		if !slices.Contains(takes, name) {
			return nil, fault.Misusef("%s: no parameter %q; it takes %s", r.URL.Path, name, cmp.Or(strings.Join(takes, ", "), "none"))
		}
		if len(values) > 1 {
			return nil, fault.Misusef("%s: %s is given %d times", r.URL.Path, name, len(values))
		}
	}
	return q, nil
}

// An unknown path.
type unknown struct{ path string }

func (e *unknown) Error() string {
	return fmt.Sprintf("%q: nothing is there; %s are", e.path, strings.Join([]string{Health, Status, Top, Follow, Plans, Check, Diff, Log, Events, Reload}, ", "))
}

// Class makes it fault.NotFound.
func (*unknown) Class() fault.Class { return fault.NotFound }

func (a *API) health(context.Context, url.Values, []byte, string) (any, error) {
	return api.HealthOf(a.options.Version, os.Getpid(), time.Since(a.began)), nil
}

func (a *API) status(_ context.Context, q url.Values, _ []byte, _ string) (any, error) {
	doc := api.AgentOf(a.agent.Status())
	if name := q.Get("target"); name != "" {
		doc.Targets = slices.DeleteFunc(doc.Targets, func(t api.AgentTarget) bool { return t.Target != name })
		if len(doc.Targets) == 0 {
			return nil, &targets.NotFound{Target: name, Why: "weird knows no target of this name that has a plan"}
		}
	}
	return doc, nil
}

func (a *API) top(ctx context.Context, _ url.Values, _ []byte, _ string) (any, error) {
	s, err := a.agent.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return api.TopOf(s, nil, besideOf(a.agent.Status(), a.options.Version).top()), nil
}

func (a *API) plans(context.Context, url.Values, []byte, string) (any, error) {
	return api.PlansOf(a.agent.Plans()), nil
}

// check reads plans that are in the request, and changes nothing.
func (a *API) check(_ context.Context, _ url.Values, body []byte, _ string) (any, error) {
	if planfile.Marks(body) > marksMost {
		return nil, fault.Misusef("the plans have more than %d keys and values, and weird reads no more for others; weir plan check reads them on this host", marksMost)
	}
	c, err := planfile.Read([]plans.File{{Name: "request", Text: body}})
	if err != nil {
		return nil, fault.Misusef("%v", a.options.Spell(err))
	}
	return api.PlansOf(c), nil
}

func (a *API) diff(ctx context.Context, _ url.Values, _ []byte, _ string) (any, error) {
	r, err := a.agent.Diff(ctx)
	if err != nil && r.IsEmpty() {
		return nil, err
	}
	doc := api.PlanTargetsOf(r, a.options.Spell)
	if err == nil {
		return doc, nil
	}
	return struct {
		api.PlanTargets
		Messages []message `json:"messages"`
	}{doc, []message{{"warning", a.options.Spell(err).Error()}}}, nil
}

// A message is one of a document's messages.
type message struct {
	Level string `json:"level"`
	Text  string `json:"text"`
}

func (a *API) log(_ context.Context, q url.Values, _ []byte, _ string) (any, error) {
	asked := journal.Query{Target: q.Get("target"), Most: LogUsual}
	if text := q.Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fault.Misusef("since=%q: write a time as 2026-11-26T03:10:00Z", text)
		}
		asked.Since = since
	}
	if text := q.Get("most"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fault.Misusef("most=%q: write a number from 1 on", text)
		}
		asked.Most = min(n, LogMost)
	}
	l, err := a.agent.Log(asked)
	if err != nil {
		return nil, err
	}
	return api.LogOf(l), nil
}

func (a *API) reload(_ context.Context, _ url.Values, _ []byte, by string) (any, error) {
	if err := a.agent.ReloadFor(by); err != nil {
		return nil, fault.Misusef("the previous plans stay in force: %v", a.options.Spell(err))
	}
	return api.PlansOf(a.agent.Plans()), nil
}
