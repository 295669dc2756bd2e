package api

import (
	"fmt"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
)

// Plans is the document of weir plan check and weir plan list.
type Plans struct {
	Schema
	Files       []string     `json:"files"`
	Plans       []Plan       `json:"plans"`
	Assignments []Assignment `json:"assign"`
	AllowLabels []string     `json:"allow_labels"`
	Default     string       `json:"default"`
}

// A Plan is a plan with what it extends.
type Plan struct {
	Plan    string      `json:"plan"`
	At      string      `json:"at"` // FILE:LINE:COLUMN
	Extends string      `json:"extends"`
	Limit   limit.Limit `json:"limit"`
	On      []PlanPlace `json:"on"`
}

// A PlanPlace is a limit of a plan on one place.
type PlanPlace struct {
	Path  string      `json:"path"`
	Limit limit.Limit `json:"limit"`
}

// An Assignment says which targets have a plan.
type Assignment struct {
	At        string            `json:"at"`
	Plan      string            `json:"plan"`
	Kind      string            `json:"kind"` // empty: all that have labels
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	Users     string            `json:"users"` // "1000-1999"
	Labels    map[string]string `json:"labels"`
}

// PlansOf makes the document of a configuration.
func PlansOf(c *plans.Config) Plans {
	doc := Plans{Schema: SchemaOf("plan"), Files: append([]string{}, c.Files...), AllowLabels: append([]string{}, c.AllowLabels...), Default: c.Default}
	doc.Plans = list(c.Plans, func(p plans.Plan) Plan {
		return Plan{p.Name, p.At.String(), p.Extends, p.Limit, list(p.On, func(a limit.Asked) PlanPlace { return PlanPlace{a.On, a.Limit} })}
	})
	doc.Assignments = list(c.Assignments, func(a plans.Assignment) Assignment {
		one := Assignment{At: a.At.String(), Plan: a.Plan, Kind: a.Kind, Name: a.Name, Namespace: a.Namespace, Labels: a.Labels}
		if a.Kind == "user" {
			one.Users = fmt.Sprintf("%d-%d", a.From, a.To)
		}
		if one.Labels == nil {
			one.Labels = map[string]string{}
		}
		return one
	})
	return doc
}

// PlanTargets is the document of weir plan show, diff and apply.
type PlanTargets struct {
	Schema
	Targets []PlanTarget `json:"targets"`
	Others  []string     `json:"others"`
}

// A PlanTarget is a target with its plan.
type PlanTarget struct {
	Target  string       `json:"target"`
	Plan    string       `json:"plan"` // "none": it has none
	By      string       `json:"by"`   // FILE:LINE:COLUMN, "its own label" or "default"; empty: nothing
	Refused string       `json:"refused,omitempty"`
	State   string       `json:"state"`
	Why     string       `json:"why,omitempty"`
	Unpaced bool         `json:"unpaced"`
	Devices []PlanDevice `json:"devices"`
}

// A PlanDevice is a device with the limit that was in force, and the one of the plan.
type PlanDevice struct {
	Device string        `json:"device"`
	Number blkdev.Number `json:"number"`
	Now    limit.Limit   `json:"now"`
	Plan   limit.Limit   `json:"plan"`
}

// PlanTargetsOf makes the document of a report. why spells the errors in it.
func PlanTargetsOf(r planned.Report, why func(error) error) PlanTargets {
	doc := PlanTargets{Schema: SchemaOf("plan.targets"), Others: append([]string{}, r.Others...)}
	doc.Targets = list(r.Targets, func(t planned.Target) PlanTarget {
		one := PlanTarget{Target: t.Name, Plan: t.Choice.Name(), By: t.Choice.By, Refused: t.Choice.Refused, State: string(t.State), Unpaced: t.Unpaced}
		if t.Err != nil {
			one.Why = why(t.Err).Error()
		}
		one.Devices = list(t.Rows, func(d planned.Device) PlanDevice { return PlanDevice{d.Node, d.Number, d.Now, d.Plan} })
		return one
	})
	return doc
}
