package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/trace"
	"github.com/weir-io/weir/internal/tui"
)

// looksEvery is how often the paths of new files are looked for: a process that ends
// sooner leaves only their names.
const looksEvery = 250 * time.Millisecond

// A tracing is a running trace, with what is read during it.
type tracing struct {
	tracer *trace.Tracer
	flags  *traceFlags
	slows  *trace.SlowWatch // nil: not asked for
	files  *trace.FileWatch // nil: not asked for
	beside *trace.Witness
}

func (a *app) watchTrace(tracer *trace.Tracer, t *target.Target, f *traceFlags) *tracing {
	pid := 0
	if t != nil {
		pid = t.PID
	}
	r := &tracing{tracer: tracer, flags: f, beside: trace.Watch(a.fs, groupOf(t), pid)}
	if f.slower > 0 {
		r.slows = tracer.WatchSlow()
	}
	if f.files {
		r.files = tracer.WatchFiles()
	}
	return r
}

// wait returns when the window is over, or a person or a signal ended it.
func (r *tracing) wait(ctx context.Context, a *app, title string) error {
	looking, stop := context.WithCancel(ctx)
	looked := make(chan error, 1)
	go func() { looked <- r.look(looking) }()
	var err error
	if !a.out.JSON && !a.out.Quiet && tui.CanShow(os.Stdin, os.Stdout) {
		err = r.show(ctx, title)
	} else {
		a.out.Say("%s for %s", title, cli.Duration(r.flags.window))
		select {
		case <-ctx.Done():
		case <-time.After(r.flags.window - time.Since(r.tracer.Began)):
		}
	}
	stop()
	return errors.Join(err, <-looked)
}

// look looks for the paths of files while there are processes that have them open.
func (r *tracing) look(ctx context.Context) error {
	for r.files != nil {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(looksEvery):
			if err := r.files.Look(); err != nil {
				return err
			}
		}
	}
	return nil
}

// show is the live view.
func (r *tracing) show(ctx context.Context, title string) error {
	before, err := r.tracer.Snapshot()
	if err != nil {
		return err
	}
	return tui.Run(ctx, tui.Options{Title: title, Window: r.flags.window, In: os.Stdin, Out: os.Stdout}, func() (tui.Frame, error) {
		now, err := r.tracer.Snapshot()
		if err != nil {
			return tui.Frame{}, err
		}
		f := tui.Frame{Whole: now.Report(&trace.Snapshot{}, r.flags.kinds), Last: now.Report(&before, r.flags.kinds), Passed: now.After}
		before = now
		return f, nil
	})
}

// close ends the trace and all that reads it.
func (r *tracing) close() error {
	err := r.tracer.Close()
	if r.beside != nil {
		_ = r.beside.Stop()
		r.beside = nil
	}
	if r.slows != nil {
		_, _, stopping := r.slows.Stop()
		err = errors.Join(err, stopping)
	}
	return err
}

// end reads what there is, and ends the trace.
func (r *tracing) end(doc *traceDocument) (s trace.Snapshot, err error) {
	defer func() { err = errors.Join(err, r.close()) }()
	if s, err = r.tracer.Snapshot(); err != nil {
		return s, err
	}
	doc.Report = s.Report(&trace.Snapshot{}, r.flags.kinds)
	doc.Missing = append(doc.Missing, r.tracer.Missing...)
	doc.Evidence, r.beside = r.beside.Stop(), nil
	if doc.Open, err = r.tracer.Pending(); err != nil {
		return s, err
	}
	if r.slows != nil {
		if doc.Slow, doc.SlowCount, err = r.slows.Stop(); err != nil {
			return s, err
		}
	}
	if r.files != nil {
		doc.Files, err = r.files.Files()
	}
	return s, err
}

// endedBy is the signal that ended a trace; nil: none did. INT asks for the report, as q
// does in the live view.
func endedBy(ctx context.Context) *launch.SignalError {
	var signaled *launch.SignalError
	if errors.As(context.Cause(ctx), &signaled) && signaled.Signal != unix.SIGINT {
		return signaled
	}
	return nil
}

// abandon ends a trace without a report: after an error, or by a signal.
func (r *tracing) abandon(a *app, err error, by *launch.SignalError) error {
	err = errors.Join(err, r.close())
	if by == nil {
		return err
	}
	if err != nil {
		a.out.Fail(err)
	} else {
		a.out.Say("%s; nothing is left", by.Signal)
	}
	return &cli.StatusError{Status: cli.ExitCode(by)}
}
