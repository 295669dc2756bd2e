package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/engine"
)

// keepsEngine reports whether a container's engine keeps limits for it.
func keepsEngine(t target.Target) bool { return t.Record != nil && t.Record.Updates }

// withoutEngine is a target whose engine is not to keep limits: it starts no pacer.
func withoutEngine(t target.Target) target.Target {
	if keepsEngine(t) {
		record := *t.Record
		record.Updates = false
		t.Record = &record
	}
	return t
}

// engineKeeps is what has a container's engine keep limits; nil: it does, or cannot.
func engineKeeps(t target.Target, places []place.Expected) (*engine.Update, error) {
	if !keepsEngine(t) {
		return nil, nil
	}
	var changes []target.Recorded
	for _, p := range places {
		changes = append(changes, target.Recorded{Path: p.Device.Node, Device: p.Device.Number, Limit: p.Limit})
	}
	return engine.UpdateOf(t.Lasting, t.Record, changes)
}

// engineForgets is the request that makes an engine store no limits for a container any more,
// on the named devices, or on all if none is named. nil: it stores none, or cannot be told.
func engineForgets(lasting string, r *target.Record, only []blkdev.Number) (*engine.Update, error) {
	if r == nil || !r.Updates {
		return nil, nil
	}
	var changes []target.Recorded
	for _, l := range r.Limits {
		if len(only) == 0 || l.Err == nil && slices.Contains(only, l.Device) {
			l.Limit = limit.None
			changes = append(changes, l)
		}
	}
	return engine.UpdateOf(lasting, r, changes)
}

// tell has an engine keep what an update says, if there is one. undo takes that back.
func (a *app) tell(ctx context.Context, u *engine.Update) (undo func() error, err error) {
	if u == nil {
		return func() error { return nil }, nil
	}
	k, err := a.engineOf(u)
	if err != nil {
		return nil, err
	}
	undo = func() error {
		if err := k.Update(context.WithoutCancel(ctx), u.Path, u.Before); err != nil {
			return fmt.Errorf("take back: %w", err)
		}
		return nil
	}
	return undo, k.Update(ctx, u.Path, u.After)
}

func (a *app) engineOf(u *engine.Update) (engine.Kind, error) {
	for _, m := range engine.Makers() {
		if m.Kind() == u.Kind {
			return a.containers(m, nil), nil
		}
	}
	return engine.Kind{}, errors.New("no engine is called " + u.Kind)
}

// tellSteps is a command that does what tell does.
func (a *app) tellSteps(u *engine.Update) ([]hold.Step, error) {
	if u == nil {
		return nil, nil
	}
	k, err := a.engineOf(u)
	if err != nil {
		return nil, err
	}
	socket, err := k.Asked()
	if err != nil {
		return nil, err
	}
	words := []string{"curl", "--unix-socket", socket, "--json", string(u.After), "http://" + u.Kind + u.Path}
	for i, word := range words {
		words[i] = cli.Quote(word)
	}
	return []hold.Step{{Command: strings.Join(words, " ")}}, nil
}
