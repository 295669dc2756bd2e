package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/engine"
)

// A Kind is the source of one kind of targets. The names that it tells and takes are a container's
// id or its beginning, a pod's UID, or a unit's name.
type Kind struct {
	kind    string
	options Options
	host    *host.Host // nil: not opened yet
	opened  time.Time
	manager planned.Manager
	found   map[string]*planned.Target // those of the last look that differ from their plans, and are not put yet, by key
	began   bool                       // all were looked at once: later looks leave targets alone that others change
}

// All makes a source for each kind that plans are for.
func All(o Options) (all []*Kind) {
	for _, kind := range planned.Kinds() {
		all = append(all, &Kind{kind: kind, options: o})
	}
	return all
}

// Kind is the kind of its targets.
func (k *Kind) Kind() string { return k.kind }

// Close ends the use of the host, once nobody calls Look and Put any more.
func (k *Kind) Close() error {
	if k.host == nil {
		return nil
	}
	return k.host.Close()
}

// Look finds targets with their plans; see reconcile.Source.
func (k *Kind) Look(ctx context.Context, names []string) ([]reconcile.Target, error) {
	k.options.Gate.GiveWay(ctx)
	if err := k.open(names == nil); err != nil {
		return nil, err
	}
	config, _ := k.options.Plans.Now()
	k.manager = planned.Manager{Host: k.host, Config: config, Live: k.options.Live, GiveWay: k.options.Gate.GiveWay}
	found, err := k.manager.OfKind(ctx, k.kind, names)
	errs := []error{err}
	k.found = map[string]*planned.Target{}
	var all []reconcile.Target
	for i := range found {
		t := &found[i]
		if t.Lapsed() { // its record is all that is left
			if err := k.manager.Put(ctx, t); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", t.Name, err))
			}
			if t.Choice.Refused == "" {
				continue
			}
		}
		if err := k.manager.Amend(ctx, t); err != nil {
			errs = append(errs, err)
		}
		if names == nil && !k.began || k.isWaited() && t.IsNew() {
			_ = k.manager.First(t) // Put says what is wrong, if it still is
		}
		one := asTarget(*t)
		if one.Differs() { // of thousands that do not, nothing has to be kept
			its := *t
			k.found[t.Key()] = &its
		}
		all = append(all, one)
	}
	k.began = k.began || names == nil
	if err = errors.Join(errs...); isBeside(err) {
		err = fmt.Errorf("%w: %w", reconcile.ErrBeside, err)
	}
	return all, err
}

// isBeside reports whether all that an error is about are damaged records, those that could not be brought up to date, and
// targets of which their owner does not tell enough: all others were looked at.
func isBeside(err error) bool {
	switch e := err.(type) {
	case *state.DamagedError, *targets.UnreadError, *planned.RecordError:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(one error) bool { return !isBeside(one) })
	case interface{ Unwrap() error }:
		return isBeside(e.Unwrap())
	}
	return false
}

// Rules reads the limits in force in a group; see reconcile.Source.
func (k *Kind) Rules(ctx context.Context, group string) (all []reconcile.Rates, err error) {
	k.options.Gate.GiveWay(ctx)
	if err := k.open(false); err != nil {
		return nil, err
	}
	io, err := k.host.IO()
	if err != nil {
		return nil, err
	}
	g, err := io.Group(group)
	if err != nil {
		return nil, err
	}
	rules, err := g.RulesIfAny()
	for _, r := range rules {
		all = append(all, reconcile.Rates{Device: r.Device, Now: limit.None.Overlay(r.Limit)})
	}
	return all, err
}

// isWaited reports whether a container runtime may be waiting for the rules of a new target: it finds them in force, and
// waits no longer, while Put has its owner and the pacer do their part.
func (k *Kind) isWaited() bool { return k.kind == "pod" || k.kind == "containerd" }

// openMost is how long an opened host is used: a hierarchy may be mounted at any time.
const openMost = time.Minute

// open opens the host, or, for a look at everything, opens an old one anew.
func (k *Kind) open(anew bool) (err error) {
	if k.host != nil && anew && time.Since(k.opened) > openMost {
		if err := k.host.Close(); err != nil {
			return err
		}
		k.host = nil
	}
	if k.host == nil {
		k.host, err = k.options.Open()
		k.opened = time.Now()
	}
	return err
}

func asTarget(t planned.Target) reconcile.Target {
	one := reconcile.Target{Key: t.Key(), Name: t.Name, ID: t.ID, Group: t.Path(), Plan: t.Choice.Name(), Unpaced: t.Unpaced, Begun: t.Begun, Err: t.Err}
	if t.Choice.IsNone() {
		one.Plan = reconcile.NoPlan
	}
	if len(t.Unfound) > 0 {
		one.Lacks = fmt.Sprintf("its annotations name the volume %s, and none of its containers has mounted one of this name: name a persistent volume as its PersistentVolume is named, or write path= and where it is mounted",
			plain.Short(strings.Join(t.Unfound, ", "), 200))
	}
	switch refused := t.Choice.Refused; {
	case refused == "":
	case t.State == planned.NoPlan:
		one.Err = errors.New(refused)
	default: // it has another plan than it asks for, or still the limits of a former one
		one.Lacks = strings.TrimPrefix(one.Lacks+"; "+refused, "; ")
	}
	for _, d := range t.Rows {
		now := d.Now
		if t.Begun && d.Plan.Bounds() {
			now = limit.None // as it was before its birth; a rule that it is not to have is to go
		}
		one.Rates = append(one.Rates, reconcile.Rates{Device: d.Number, Node: d.Node, Now: now, Want: d.Plan})
	}
	return one
}

// Put puts the plan of a target into force; see reconcile.Source.
func (k *Kind) Put(ctx context.Context, key string) error {
	t := k.found[key]
	if t == nil {
		return fmt.Errorf("%s: it was not looked at", key)
	}
	if delete(k.found, key); len(k.found) == 0 {
		k.found = nil // of thousands, whose next look may be far away
	}
	k.options.Gate.GiveWay(ctx)
	err := k.manager.Put(ctx, t)
	var none *targets.NotFound
	var stopped *targets.StoppedError
	if errors.Is(err, limiting.ErrEnded) || errors.As(err, &none) || errors.As(err, &stopped) {
		err = fmt.Errorf("%w: %w", reconcile.ErrEnded, err)
	}
	return err
}

// Follows reports whether there is an engine to be followed.
func (k *Kind) Follows() bool {
	config, _ := k.options.Plans.Now()
	return config.Needs(k.kind) && slices.ContainsFunc(engine.Makers(), func(m engine.Maker) bool { return m.Kind() == k.kind })
}

// Alone reports whether a key has the name that a target is looked at by: the key of a container of containerd has its
// namespace too.
func (k *Kind) Alone() bool { return k.kind != "containerd" }

// Follow has Docker or Podman tell of their containers. Of the other kinds the cgroup tree tells;
// see Tree.
func (k *Kind) Follow(ctx context.Context, changed func(name string)) error {
	i := slices.IndexFunc(engine.Makers(), func(m engine.Maker) bool { return m.Kind() == k.kind })
	for config, next := k.options.Plans.Now(); i < 0 || !config.Needs(k.kind); config, next = k.options.Plans.Now() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next:
		}
	}
	h, err := k.options.Open()
	if err != nil {
		return err
	}
	defer h.Close()
	containers := h.Containers(engine.Makers()[i], nil)
	err = containers.Events(ctx, func() {
		k.learn(ctx, containers)
		changed("")
	}, func(e engine.Event) {
		switch e.What {
		case engine.Made, engine.Renamed:
			k.learn(ctx, containers, e.ID)
		case engine.Removed:
			k.forget(e.ID)
		}
		if e.Ended {
			k.options.Ended(k.kind, e.ID)
		}
		if e.What != engine.Made {
			changed(e.ID)
		}
	})
	var none *targets.NoKindError
	if errors.As(err, &none) {
		return fmt.Errorf("%w: %w", reconcile.ErrNotHere, err)
	}
	return err
}

// learnMost bounds a question about containers that do not run yet.
const learnMost = 5 * time.Second

// learn asks an engine for containers, or for all, before they start: while one starts, Docker holds
// its lock. Of one that is not learnt the rules come once it runs.
func (k *Kind) learn(ctx context.Context, containers engine.Kind, ids ...string) {
	if k.options.Births == nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, learnMost)
	defer cancel()
	all, err := containers.ListMade(bounded, ids...)
	if err != nil {
		k.options.Births.news(err)
		return
	}
	k.options.Births.Learn(k.kind, len(ids) == 0, all...)
}

func (k *Kind) forget(id string) {
	if k.options.Births != nil {
		k.options.Births.Forget(k.kind, id)
	}
}
