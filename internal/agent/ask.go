package agent

import (
	"context"
	"errors"

	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
)

// Plans are the plans in force. Nobody may change them.
func (a *Agent) Plans() *plans.Config {
	config, _ := a.plans.Now()
	return config
}

// Snapshot is what all groups read and write: what was read last, if that is less than a second old,
// or what is read now. It may wait for engines that are asked for names.
func (a *Agent) Snapshot(ctx context.Context) (*watch.Snapshot, error) {
	return a.measurer.snapshot(ctx)
}

// Newer is Snapshot for who has seen one: another one, or what is read now.
func (a *Agent) Newer(ctx context.Context, seen *watch.Snapshot) (*watch.Snapshot, error) {
	return a.measurer.newer(ctx, seen)
}

// Diff compares all targets with the plans in force, and changes nothing. It asks all engines, on a
// host of its own.
func (a *Agent) Diff(ctx context.Context) (r planned.Report, err error) {
	h, err := a.options.Open()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	m := planned.Manager{Host: h, Config: a.Plans()}
	if a.cluster != nil {
		m.Live = a.cluster
	}
	return m.Diff(ctx)
}

// Log reads the journal. An agent without one has no entries.
func (a *Agent) Log(q journal.Query) (journal.Log, error) {
	if a.options.Journal == nil {
		return journal.Log{}, nil
	}
	return journal.Read(a.options.Journal.Dir(), q)
}
