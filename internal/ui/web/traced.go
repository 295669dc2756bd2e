package web

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

// A waits is the part of a group's page that says where its reads and writes wait. It has sums only:
// no names of files or processes, which not everybody may know who can open the page.
type waits struct {
	Link    string // starts a trace; empty: none can be started
	Why     string // why not
	Command string // to be run in a terminal
	For     string // how long one takes
	Error   string
	Traced  *traced // nil: there is none
}

// A traced is what a trace saw.
type traced struct {
	At, Took string
	Ops      []tracedOps
	Advice   []string
	Behind   []tracedBehind
	Notes    []string
}

// tracedOps is one kind of operation.
type tracedOps struct {
	Name, Calls, Rate, P50, P99, Max, Failed string
	What, Of                                 string // what the shares are of
	Shares                                   []tracedShare
	Note                                     string
}

type tracedShare struct {
	Name, Percent string
	Bar           int // in percent
}

// tracedBehind is I/O that no operation waited for: means of a request.
type tracedBehind struct{ Name, Requests, Bytes, Throttle, Queue, Device, Longest string }

// waitsOf is what the page of a group says now. It traces if the request asks for that.
func (p *Page) waitsOf(r *http.Request, g *watch.Group) *waits {
	w := &waits{Command: "weir trace " + cut(cmdline.Quote(g.Target)), For: fmt.Sprintf("%.0f s", traceFor.Seconds())}
	if err := p.tracing.hindrance(); err != nil {
		w.Why = message(err)
		return w
	}
	w.Link = p.tracing.link(g.Path)
	m := p.tracing.known(g.Path)
	if p.tracing.asked(r) {
		now, err := p.tracing.measure(r.Context(), g.Path)
		if err != nil {
			w.Error = message(err)
		} else {
			m = now
		}
	}
	switch {
	case m == nil:
	case m.err != nil:
		w.Error = message(m.err)
	default:
		w.Traced = tracedOf(m.traced, m.ended)
	}
	return w
}

func tracedOf(t trace.Traced, at time.Time) *traced {
	v := &traced{At: clock(at), Took: cli.Latency(t.Took)}
	for _, o := range t.Ops {
		v.Ops = append(v.Ops, tracedOpsOf(o, t.Took))
	}
	for _, a := range t.Advice {
		v.Advice = append(v.Advice, sentence(plain.Brief(a.Text)))
	}
	for _, b := range t.Behind {
		v.Behind = append(v.Behind, tracedBehindOf(b))
	}
	if len(t.Ops) == 0 {
		v.Notes = append(v.Notes, "The group did no read, write or fsync of a file on a disk in this time.")
	}
	if words := text.MissingWords(t.Missing); words != "" {
		v.Notes = append(v.Notes, sentence(plain.Brief(words)))
	}
	for _, l := range text.LostWords(t.Lost) {
		v.Notes = append(v.Notes, sentence("lost: "+l))
	}
	return v
}

func tracedOpsOf(o trace.OpsReport, took time.Duration) tracedOps {
	one := tracedOps{Name: o.Kind.String(), Calls: cli.CountOf(o.Count, "call", "calls"), P50: cli.Latency(o.P50), P99: cli.Latency(o.P99), Max: cli.Latency(o.Max), Note: text.UnseenWords(o)}
	if took > 0 {
		one.Rate = cli.PerSecond(float64(o.Count) / took.Seconds())
	}
	if o.Errors > 0 {
		one.Failed = cli.Count(o.Errors) + " failed"
	}
	shares, of := o.Shares()
	one.What, one.Of = text.SharesWords(o), cli.Latency(of)
	for _, s := range shares {
		one.Shares = append(one.Shares, tracedShare{s.Title, text.SharePercent(s) + " %", int(math.Round(100 * s.Share))})
	}
	return one
}

func tracedBehindOf(b trace.BehindReport) tracedBehind {
	each := func(sum time.Duration) string { return cli.Latency(sum / time.Duration(max(1, b.Requests))) }
	one := tracedBehind{Name: b.Direction(), Requests: cli.Count(b.Requests), Bytes: limit.FormatMeasured(float64(b.Bytes)), Throttle: "not known",
		Queue: each(b.Queue), Device: each(b.Device), Longest: cli.Latency(b.TotalMost)}
	if b.ThrottleKnown {
		one.Throttle = each(b.Throttle)
	}
	return one
}
