package web

import (
	"context"
	"errors"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/host"
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
	facts, _, err := explain.Facts(ctx, h, explain.Request{Subject: target, Planned: planned.SetFor(h)})
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
