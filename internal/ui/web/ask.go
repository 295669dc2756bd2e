package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/look/explain"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans/planfile"
)

// An answer is what weir why and weir plan show say of a group.
type answer struct {
	Error    string
	Findings []finding
	Plan     *planView // nil: there is none
	PlanErr  string
}

// A finding is one of weir why's.
type finding struct {
	Number               int
	Code, Severity, Text string
	Evidence             []api.Evidence
	Fixes                []fix
}

type fix struct {
	Text  string
	Lines []string
}

// A planView is a group beside its plan.
type planView struct {
	Name, By, State, Why string
	Devices              []planDevice
}

type planDevice struct{ Node, Now, Plan string }

// ask answers a question about a group: one question at a time, and in a bounded time.
func (p *Page) ask(ctx context.Context, g *watch.Group) *answer {
	wait, cancel := context.WithTimeout(ctx, waitMost)
	defer cancel()
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-wait.Done():
		return &answer{Error: message(errBusy)}
	}
	ctx, end := context.WithTimeout(ctx, questionMost)
	defer end()
	a := &answer{}
	h, err := p.o.Open()
	if err == nil {
		var plan error
		a.Findings, err = findings(ctx, h, g.Target)
		a.Plan, plan = planOf(ctx, h, g.Target)
		if plan != nil {
			a.PlanErr = message(plan)
		}
		err = errors.Join(err, h.Close())
	}
	if err != nil {
		a.Error = message(err)
	}
	return a
}

// findings asks weir why.
func findings(ctx context.Context, h *host.Host, target string) ([]finding, error) {
	facts, _, err := explain.Facts(ctx, h, explain.Request{Subject: target})
	if err != nil {
		return nil, err
	}
	all := []finding{}
	for _, f := range api.WhyOf(why.Judge(facts), nil).Findings {
		one := finding{Number: f.Number, Code: f.Code, Severity: string(f.Severity), Text: plain.Brief(f.Text)}
		for _, e := range f.Evidence {
			one.Evidence = append(one.Evidence, api.Evidence{File: plain.Brief(e.File), Value: plain.Brief(e.Value)})
		}
		for _, x := range f.Fixes {
			lines := make([]string, len(x.Lines))
			for i, l := range x.Lines {
				lines[i] = plain.Brief(l)
			}
			one.Fixes = append(one.Fixes, fix{plain.Brief(x.Text), lines})
		}
		all = append(all, one)
	}
	return all, nil
}

// planOf compares a target with its plan; nil: it has none.
func planOf(ctx context.Context, h *host.Host, target string) (*planView, error) {
	config, err := planned.Load(h.Root, "", planfile.Read)
	if err != nil || len(config.Plans) == 0 {
		return nil, err
	}
	r, err := planned.Manager{Host: h, Config: config}.Show(ctx, target)
	if err != nil {
		return nil, err
	}
	for _, t := range api.PlanTargetsOf(r, func(e error) error { return e }).Targets {
		if t.Plan == "none" && t.Refused == "" {
			continue
		}
		v := &planView{Name: cut(t.Plan), By: cut(t.By), State: t.State, Why: plain.Brief(t.Why + t.Refused)}
		for _, d := range t.Devices {
			v.Devices = append(v.Devices, planDevice{cut(d.Device), d.Now.String(), d.Plan.String()})
		}
		return v, nil
	}
	return nil, nil
}

// How often it is looked up which group has which plan, and how long that may take.
const plansEvery, plansMost = 30 * time.Second, 10 * time.Second

// plansPatience is how long a page waits for that.
const plansPatience = time.Second

// planNames are the plans of groups, by their paths. Engines are asked for their containers only if
// there are plans.
type planNames struct {
	open func() (*host.Host, error)
	ctx  context.Context // of the page

	mu    sync.Mutex
	names map[string]string
	asked time.Time
	done  chan struct{} // is closed when the look-up ends; nil: there was none
	work  sync.WaitGroup
}

// now is what is known.
func (n *planNames) now() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names
}

// refresh looks them up anew if that is due, and does not wait for it.
func (n *planNames) refresh(s *watch.Snapshot) (done chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.done != nil {
		select {
		case <-n.done:
			if time.Since(n.asked) < plansEvery {
				return n.done
			}
		default:
			return n.done // it is under way
		}
	}
	n.asked, n.done = time.Now(), make(chan struct{})
	done = n.done
	n.work.Add(1)
	go func() {
		defer n.work.Done()
		defer close(done)
		names := n.find(s)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.names = names
	}()
	return done
}

// wanted is what is known after a moment.
func (n *planNames) wanted(ctx context.Context, s *watch.Snapshot) map[string]string {
	select {
	case <-n.refresh(s):
	case <-ctx.Done():
	case <-time.After(plansPatience):
	}
	return n.now()
}

// find asks for the plans of all groups. What cannot be told is left out: the group's page says why.
func (n *planNames) find(s *watch.Snapshot) map[string]string {
	names := map[string]string{}
	h, err := n.open()
	if err != nil {
		return names
	}
	defer func() { _ = h.Close() }() // it was only read
	ctx, cancel := context.WithTimeout(n.ctx, plansMost)
	defer cancel()
	shown := limiting.Shown{}
	for _, g := range s.Groups {
		shown.Groups = append(shown.Groups, limiting.Group{Target: g.Target, Path: g.Path, Owner: g.Owner})
	}
	_ = planned.Mark(ctx, h, planfile.Read, &shown)
	for _, g := range shown.Groups {
		if g.Plan != nil {
			names[g.Path] = cut(g.Plan.Name)
		}
	}
	return names
}

// wait waits for a look-up that is under way.
func (n *planNames) wait() { n.work.Wait() }
