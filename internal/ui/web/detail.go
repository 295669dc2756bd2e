package web

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/top"
)

// A cell is a text that a stream keeps true.
type cell struct{ ID, Text string }

// A rate is a line of a device: what the group does beside its limit.
type rate struct {
	Name          string
	Now, Percent  cell
	Bar           cell // its text is a percentage up to 100; empty: there is none
	Limit         string
	Total         cell
	Limited, Over bool
}

// A device is one on which the group does I/O or has limits.
type device struct {
	Node, Number         string
	Rates                []rate
	Held, NotHeld, Notes []string // sentences: what is expected to hold, and what not
	Measured             []mark   // of each rate with a limit
}

// A mark is what was measured of a limit.
type mark struct {
	Name string // of the rate
	Text cell
}

// A detail is what the page of a group says of now, or of the time that is shown.
type detail struct {
	Target, Path, Owner, Plan    string
	Devices                      []device
	Some, Full, Dirty, Writeback cell // empty texts: the kernel does not say
	Pacer                        cell
	Look, Badge                  string
	Gone                         bool // the group is not in the snapshot
}

// noRate stands for what is not known.
const noRate = "–"

func detailOf(g *watch.Group, plan string, v held.Verdict) detail {
	d := detail{Target: cut(g.Target), Path: cut(g.Path), Owner: cut(g.Owner.String()), Plan: plan, Look: lookWord(top.LookOf(g)), Badge: title(top.LookOf(g)),
		Some: cell{ID: "some"}, Full: cell{ID: "full"}, Dirty: cell{ID: "dirty"}, Writeback: cell{ID: "writeback"}, Pacer: cell{ID: "pacer"}}
	for i, one := range g.Devices {
		d.Devices = append(d.Devices, deviceOf(i, one, v))
	}
	if p := g.Pressure; p != nil {
		d.Some.Text, d.Full.Text = noRate, noRate
		if p.Known {
			d.Some.Text, d.Full.Text = top.PercentText(p.Some), top.PercentText(p.Full)
		}
	}
	if m := g.Memory; m != nil {
		d.Dirty.Text, d.Writeback.Text = limit.FormatMeasured(float64(m.Dirty)), limit.FormatMeasured(float64(m.Writeback))
	}
	if g.Paced != nil {
		d.Pacer.Text = top.PacedLine(*g.Paced, g.Paused)
	}
	return d
}

func deviceOf(i int, d watch.Device, v held.Verdict) device {
	one := device{Node: cut(d.Node), Number: d.Number.String()}
	for _, k := range []limit.Key{limit.WBPS, limit.RBPS, limit.WIOPS, limit.RIOPS} {
		one.Rates = append(one.Rates, rateOf(fmt.Sprintf("%d.%s.", i, k), k, d))
		if _, bound := d.Limit.Get(k).Number(); bound {
			one.Measured = append(one.Measured, mark{titleOf(k), cell{fmt.Sprintf("%d.%s.measured", i, k), measuredText(v, d.Number, k)}})
		}
	}
	if d.Expected == nil {
		return one
	}
	held, not, notes := d.Expected.Words()
	one.Held, one.NotHeld, one.Notes = sentences(held), sentences(not), sentences(notes)
	return one
}

// measuredText says what was measured of a limit.
func measuredText(v held.Verdict, on blkdev.Number, k limit.Key) string {
	for _, l := range v.Limits {
		if l.Device == on && l.Key == k {
			return cut(top.MeasuredText(l))
		}
	}
	return "not told: weir measures while a page is live"
}

// sentences begin with a capital letter.
func sentences(words []string) []string {
	for i, w := range words {
		words[i] = cut(capital(w))
	}
	return words
}

// capital begins with a capital letter.
func capital(w string) string { return strings.ToUpper(w[:min(1, len(w))]) + w[min(1, len(w)):] }

// sentence begins with a capital letter, and ends.
func sentence(w string) string { return capital(strings.TrimSuffix(w, ".")) + "." }

// rateOf makes a line; id is what its cells are called.
func rateOf(id string, k limit.Key, d watch.Device) rate {
	r := rate{Name: titleOf(k), Now: cell{id + "now", noRate}, Percent: cell{id + "percent", ""}, Bar: cell{ID: id + "bar"}, Total: cell{id + "total", ""}, Limit: "no limit"}
	spell := func(v float64) string {
		if k.IsOps() {
			return top.OpsText(v) + " ops"
		}
		return limit.FormatMeasured(v)
	}
	if d.Rates != nil {
		r.Now.Text = spell(d.Rates.Get(k)) + "/s"
	}
	if d.Counted {
		r.Total.Text = spell(map[limit.Key]float64{limit.RBPS: float64(d.Total.ReadBytes), limit.WBPS: float64(d.Total.WrittenBytes), limit.RIOPS: float64(d.Total.Reads), limit.WIOPS: float64(d.Total.Writes)}[k])
	}
	if _, bound := d.Limit.Get(k).Number(); bound {
		r.Limited, r.Limit, r.Percent.Text, r.Bar.Text = true, d.Limit.Get(k).Format(k), noRate, "0"
	}
	if percent, known := d.Percent(k); known {
		r.Percent.Text, r.Bar.Text = top.PercentText(percent), fmt.Sprint(int(math.Round(min(percent, 100))))
	}
	return r
}

// title says a look in words, beside the group's name.
func title(l top.Look) string {
	return map[top.Look]string{top.NotHeld: "not all of its limits are expected to hold", top.Exceeded: badge(top.Exceeded)}[l]
}

// titleOf is a rate's name at the beginning of a line.
func titleOf(k limit.Key) string {
	text := top.KeyText(k)
	return strings.ToUpper(text[:1]) + text[1:]
}

// cells are all that a stream keeps true.
func (d detail) cells() []cell {
	all := []cell{d.Some, d.Full, d.Dirty, d.Writeback, d.Pacer}
	for _, one := range d.Devices {
		for _, r := range one.Rates {
			all = append(all, r.Now, r.Percent, r.Bar, r.Total)
		}
		for _, m := range one.Measured {
			all = append(all, m.Text)
		}
	}
	return all
}

// shape is what a stream does not keep true: where it differs, the page has to be loaded anew.
func (d detail) shape() string {
	var b strings.Builder
	fmt.Fprint(&b, d.Target, d.Owner, d.Plan, d.Look, d.Gone, d.Some.Text == "", d.Dirty.Text == "", d.Pacer.Text == "")
	for _, one := range d.Devices {
		fmt.Fprint(&b, one.Node, one.Number, one.Held, one.NotHeld, one.Notes)
		for _, r := range one.Rates {
			fmt.Fprint(&b, r.Limit)
		}
	}
	return idOf(b.String())
}

// A groupEvent is what a stream sends of one group.
type groupEvent struct {
	Version string            `json:"version"`
	Time    string            `json:"time"`
	Host    string            `json:"host"`
	Shape   string            `json:"shape"`
	Cells   map[string]string `json:"cells"`
	Point   *point            `json:"point"` // for the charts; null: there is no rate
}

// find finds a group by its path; nil: it is not there.
func find(s *watch.Snapshot, path string) *watch.Group {
	for _, g := range s.Groups {
		if g.Path == path {
			return g
		}
	}
	return nil
}

func (p *Page) groupEvent(s *watch.Snapshot, by measured, path string) groupEvent {
	e := groupEvent{Version: p.o.Version, Time: clock(s.At), Host: top.HostLine(s), Cells: map[string]string{}}
	d := detail{Gone: true}
	if g := find(s, path); g != nil {
		d = detailOf(g, cut(p.o.Plans.Now()[path]), by[idOf(path)])
		e.Point = pointOf(s, g)
	}
	e.Shape = d.shape()
	for _, c := range d.cells() {
		if c.ID != "" {
			e.Cells[c.ID] = c.Text
		}
	}
	return e
}

// A detailPage is what the template shows.
type detailPage struct {
	head
	detail
	Shape    string
	Time     string
	Host     string
	Stream   string // the address of what keeps it true
	Back     string // to the list
	LiveLink string // to the group as it is now
	SpanText string
	Recorded bool
	Spans    []span
	Charts   string // the address of what the charts show
	Past     *past  // nil: nothing was recorded
	NoPast   string // why
	Asked    *answer
	AskLink  string
	Waits    *waits // nil: of the past nothing is known
	Now      string // the time that is shown; empty: now
}

// A span is a choice of how much of history to show.
type span struct {
	Text, Link string
	Chosen     bool
}

// spans are how far back charts go.
func spans() []time.Duration {
	return []time.Duration{10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}
}

const usualSpan = time.Hour

func spanText(d time.Duration) string {
	switch day := 24 * time.Hour; {
	case d == time.Hour:
		return "hour"
	case d == day:
		return "day"
	case d > day && d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}

// A period is which part of history a group's page shows.
type period struct {
	from, to time.Time
	span     time.Duration
	at       string // the time in its middle, as it was asked for; empty: it ends now
}

// periodOf reads a period: at and span.
func periodOf(q url.Values, now time.Time) (t period, err error) {
	t = period{to: now, span: usualSpan, at: q.Get("at")}
	if text := q.Get("span"); text != "" {
		if t.span, err = time.ParseDuration(text); err != nil || t.span < time.Minute || t.span > 31*24*time.Hour {
			return t, fmt.Errorf("span %q: write a time from 1m to 744h", cut(text))
		}
	}
	if t.at != "" {
		when, err := history.ParseWhen("at", t.at, now)
		if err != nil {
			return t, err
		}
		if t.to = when.Add(t.span / 2); t.to.After(now) {
			t.to = now
		}
	}
	t.from = t.to.Add(-t.span)
	return t, nil
}

// query spells it, with another span.
func (t period) query(d time.Duration) url.Values {
	q := url.Values{}
	if t.at != "" {
		q.Set("at", t.at)
	}
	if d != usualSpan {
		q.Set("span", spanSpelling(d))
	}
	return q
}

func spanSpelling(d time.Duration) string {
	if d%time.Hour == 0 {
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

// group answers with one group.
func (p *Page) group(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	path := q.Get("cgroup")
	t, err := periodOf(q, time.Now())
	if err == nil && path == "" {
		err = errNoGroup
	}
	if err != nil {
		p.refuse(w, http.StatusBadRequest, message(err))
		return
	}
	page := detailPage{head: p.head("", true), Stream: "/stream" + strings.TrimPrefix(linkTo(path, nil), "/group"), Back: "/", LiveLink: linkTo(path, nil), SpanText: spanText(t.span), Recorded: p.o.History != "", AskLink: linkTo(path, url.Values{"why": {"1"}}) + "#why"}
	var s *watch.Snapshot
	plans := map[string]string{}
	if t.at != "" {
		when, _ := history.ParseWhen("at", t.at, time.Now())
		s, err = p.at(r.Context(), when)
		page.Live, page.AskLink = false, ""
	} else if s, err = p.snapshot(r.Context()); err == nil {
		plans = p.o.Plans.Wanted(r.Context(), s)
	}
	if err != nil {
		p.fail(w, err)
		return
	}
	if t.at != "" {
		page.Now = s.At.Format("2006-01-02 15:04:05")
		page.Back = "/?" + url.Values{"at": {page.Now}}.Encode()
	}
	g := find(s, path)
	page.Time, page.Host = clock(s.At), top.HostLine(s)
	target := "cgroup:" + path
	if g != nil {
		target, page.detail = g.Target, detailOf(g, cut(plans[path]), p.follow.measured()[idOf(path)])
	} else {
		page.detail = detail{Target: cut(target), Path: cut(path), Gone: true}
		page.AskLink = ""
	}
	page.Title, page.Shape = page.Target, page.shape()
	for _, d := range spans() {
		page.Spans = append(page.Spans, span{spanText(d), linkTo(path, t.query(d)), d == t.span})
	}
	page.Charts = "/history?" + strings.TrimPrefix(linkTo(path, t.query(t.span)), "/group?")
	if page.Recorded {
		page.Past, page.NoPast = p.pastOrWhy(r.Context(), target, t)
	}
	if page.Gone && page.Past == nil {
		p.refuse(w, http.StatusNotFound, cut(path)+": there is no such group that did I/O or has a limit.")
		return
	}
	if g != nil && page.Live {
		if q.Get("why") != "" && !isLink(r) {
			page.Asked = p.ask(r.Context(), g)
		}
		page.Waits = p.waitsOf(r, g)
		page.Still = page.Asked != nil || p.tracing.asked(r)
	}
	p.show(w, "group.html", page)
}
