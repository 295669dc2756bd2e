package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/top"
)

// pointsMost is how many points a chart has at most, and linesMost how many lines its table.
const pointsMost, linesMost = 720, 30

// A past is what charts show of a group: for each device the same times, with null for what is not
// known.
type past struct {
	Step    float64       `json:"step"` // seconds between two points
	From    float64       `json:"from"` // Unix time
	To      float64       `json:"to"`
	Times   []float64     `json:"times"` // the ends of the points' windows
	Devices []*pastDevice `json:"devices"`
	Some    []*float64    `json:"some"` // percent of the time
	Full    []*float64    `json:"full"`
	Words   []string      `json:"-"` // what the charts show, in words
	Lines   []pastLine    `json:"-"` // and as a table
}

// A pastDevice is a device with its rates and limits, by limit.Key's names.
type pastDevice struct {
	Node   string                `json:"node"`
	Rates  map[string][]*float64 `json:"rates"`
	Limits map[string][]*float64 `json:"limits"` // without those that there never were
}

// A pastLine is a line of the table.
type pastLine struct{ Time, Device, Write, Read, WriteLimit, ReadLimit, Wait string }

// A point is what a stream adds to the charts.
type point struct {
	Time    float64       `json:"time"`
	Devices []pointDevice `json:"devices"`
	Some    *float64      `json:"some"`
	Full    *float64      `json:"full"`
}

type pointDevice struct {
	Node   string              `json:"node"`
	Rates  map[string]float64  `json:"rates"`
	Limits map[string]*float64 `json:"limits"`
}

func pointOf(s *watch.Snapshot, g *watch.Group) *point {
	one := &point{Time: unixOf(s.At)}
	for _, d := range g.Devices {
		if d.Rates == nil {
			continue
		}
		p := pointDevice{Node: cut(d.Node), Rates: map[string]float64{}, Limits: map[string]*float64{}}
		for _, k := range limit.Keys {
			p.Rates[k.String()] = d.Rates.Get(k)
			if n, bound := d.Limit.Get(k).Number(); bound {
				p.Limits[k.String()] = ref(float64(n))
			}
		}
		one.Devices = append(one.Devices, p)
	}
	if p := g.Pressure; p != nil && p.Known {
		one.Some, one.Full = &p.Some, &p.Full
	}
	if len(one.Devices) == 0 {
		return nil
	}
	return one
}

func ref(v float64) *float64 { return &v }

func unixOf(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// read opens the history for one reader of a few.
func (p *Page) read(ctx context.Context, do func(*history.Reader) error) (err error) {
	wait, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-wait.Done():
		return errBusy
	}
	if p.o.History == "" {
		return errNoHistory
	}
	r, err := history.Open(p.o.History)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return do(r)
}

var (
	errBusy      = errors.New("weird answers others just now; try again")
	errNoGroup   = errors.New("cgroup: name the group's path")
	errNoHistory = errors.New("nothing is recorded: start weird metrics with --history")
)

// at finds a snapshot of the past.
func (p *Page) at(ctx context.Context, when time.Time) (s *watch.Snapshot, err error) {
	err = p.read(ctx, func(r *history.Reader) error {
		s, err = r.At(ctx, when)
		return err
	})
	return s, err
}

// past finds what a target did.
func (p *Page) past(ctx context.Context, target string, t period) (*past, error) {
	var s watch.Series
	err := p.read(ctx, func(r *history.Reader) (err error) {
		s, err = r.Series(ctx, target, t.from, t.to)
		return err
	})
	if err != nil {
		return nil, err
	}
	return pastOf(s, t), nil
}

// pastOrWhy is past; without one it says in words why.
func (p *Page) pastOrWhy(ctx context.Context, target string, t period) (found *past, why string) {
	found, err := p.past(ctx, target, t)
	var nothing *history.NothingError
	switch {
	case errors.As(err, &nothing):
		return nil, "Nothing of this group was recorded in this time."
	case err != nil:
		return nil, message(err)
	}
	return found, ""
}

// history answers with what charts show.
func (p *Page) history(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	t, err := periodOf(q, time.Now())
	if err == nil && q.Get("cgroup") == "" {
		err = errNoGroup
	}
	if err != nil {
		p.refuse(w, http.StatusBadRequest, message(err))
		return
	}
	target := "cgroup:" + q.Get("cgroup")
	if s, err := p.snapshot(r.Context()); err == nil {
		if g := find(s, q.Get("cgroup")); g != nil {
			target = g.Target
		}
	}
	c, err := p.past(r.Context(), target, t)
	if err != nil {
		p.fail(w, err)
		return
	}
	text, err := json.Marshal(c)
	if err != nil {
		p.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a client that has gone needs no answer
}

// A bin is the mean of the points of one time, weighted by their windows.
type bin struct {
	seconds    [4]float64 // that the rates are over
	sums       [4]float64
	limits     [4]*float64 // the last ones
	some, full float64
	pressed    float64
}

// pastOf puts a series into at most pointsMost bins.
func pastOf(s watch.Series, t period) *past {
	step := max(s.Step, t.span/pointsMost).Truncate(time.Second)
	step = max(step, s.Step, time.Second)
	c := &past{Step: step.Seconds(), From: unixOf(t.from), To: unixOf(t.to), Devices: []*pastDevice{}, Times: []float64{}}
	c.fill(binsOf(s, t.from, step), t, step)
	c.Words = c.words()
	c.Lines = linesOf(s, t)
	return c
}

// binsOf are bins of each device, by their number from a time on.
func binsOf(s watch.Series, from time.Time, step time.Duration) map[string]map[int]*bin {
	all := map[string]map[int]*bin{}
	for _, p := range s.Points {
		node := cut(p.Device.Node)
		if all[node] == nil {
			all[node] = map[int]*bin{}
		}
		// A point is of the time that ended then: each bin gets its part.
		end := p.At.Sub(from)
		start := max(0, end-p.Window)
		for i := start / step; i*step < end; i++ {
			b := all[node][int(i)]
			if b == nil {
				b = &bin{}
				all[node][int(i)] = b
			}
			b.add(p, (min(end, (i+1)*step) - max(start, i*step)).Seconds())
		}
	}
	return all
}

// add adds so many seconds of a point.
func (b *bin) add(p watch.Point, seconds float64) {
	for _, k := range limit.Keys {
		if p.Device.Rates != nil {
			b.sums[k] += seconds * p.Device.Rates.Get(k)
			b.seconds[k] += seconds
		}
		b.limits[k] = nil
		if n, bound := p.Device.Limit.Get(k).Number(); bound {
			b.limits[k] = ref(float64(n))
		}
	}
	if p.Pressure != nil {
		b.some += seconds * p.Pressure.Some
		b.full += seconds * p.Pressure.Full
		b.pressed += seconds
	}
}

// mean is a rate; nil: it is not known.
func (b *bin) mean(k limit.Key) *float64 {
	if b == nil || b.seconds[k] == 0 {
		return nil
	}
	return ref(b.sums[k] / b.seconds[k])
}

func (b *bin) wait() (some, full *float64) {
	if b == nil || b.pressed == 0 {
		return nil, nil
	}
	return ref(b.some / b.pressed), ref(b.full / b.pressed)
}

// fill makes the rows of a chart: a time that no bin has stays a gap.
func (c *past) fill(bins map[string]map[int]*bin, t period, step time.Duration) {
	n := int(t.span/step) + 1
	nodes := slices.Sorted(maps.Keys(bins))
	for i := range n {
		c.Times = append(c.Times, unixOf(t.from.Add(time.Duration(i+1)*step)))
		var some, full *float64
		for _, node := range nodes {
			if some == nil { // it is the group's: each device has the same
				some, full = bins[node][i].wait()
			}
		}
		c.Some, c.Full = append(c.Some, some), append(c.Full, full)
	}
	for _, node := range nodes {
		d := &pastDevice{Node: node, Rates: map[string][]*float64{}, Limits: map[string][]*float64{}}
		for _, k := range limit.Keys {
			limited := false
			limits := make([]*float64, n)
			for i := range n {
				b := bins[node][i]
				d.Rates[k.String()] = append(d.Rates[k.String()], b.mean(k))
				if b != nil && b.limits[k] != nil {
					limits[i], limited = b.limits[k], true
				}
			}
			if limited {
				d.Limits[k.String()] = limits
			}
		}
		c.Devices = append(c.Devices, d)
	}
}

// words say what the charts show, for who does not see them.
func (c *past) words() (all []string) {
	for _, d := range c.Devices {
		for _, k := range []limit.Key{limit.WBPS, limit.RBPS} {
			sum, most, n, at := 0.0, 0.0, 0, 0
			for i, v := range d.Rates[k.String()] {
				if v == nil {
					continue
				}
				n++
				sum += *v
				most = max(most, *v)
				if l := d.Limits[k.String()]; l != nil && l[i] != nil && *v >= 0.95**l[i] {
					at++
				}
			}
			if n == 0 || most == 0 {
				continue
			}
			text := fmt.Sprintf("%s on %s: mean %s/s, highest %s/s", titleOf(k), d.Node, limit.FormatMeasured(sum/float64(n)), limit.FormatMeasured(most))
			if d.Limits[k.String()] != nil {
				text += fmt.Sprintf(", at its limit for %s of the time", top.PercentText(100*float64(at)/float64(n)))
			}
			all = append(all, text)
		}
	}
	return all
}

// linesOf are the lines of the table, the newest first.
func linesOf(s watch.Series, t period) (lines []pastLine) {
	step := max((t.span / linesMost).Truncate(time.Second), s.Step)
	bins := binsOf(s, t.from, step)
	format := "15:04:05"
	if t.span > 24*time.Hour {
		format = "01-02 15:04"
	}
	for i := int(t.span / step); i >= 0; i-- {
		for _, node := range slices.Sorted(maps.Keys(bins)) {
			b := bins[node][i]
			if b == nil {
				continue
			}
			some, _ := b.wait()
			l := pastLine{Time: t.from.Add(time.Duration(i+1) * step).Local().Format(format), Device: node, Write: perSecond(b.mean(limit.WBPS)), Read: perSecond(b.mean(limit.RBPS)),
				WriteLimit: perSecond(b.limits[limit.WBPS]), ReadLimit: perSecond(b.limits[limit.RBPS]), Wait: noRate}
			if some != nil {
				l.Wait = top.PercentText(*some)
			}
			lines = append(lines, l)
		}
	}
	return lines
}

func perSecond(v *float64) string {
	if v == nil {
		return noRate
	}
	return limit.FormatMeasured(*v) + "/s"
}
