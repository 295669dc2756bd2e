package main

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/svg"
	"github.com/weir-io/weir/internal/ui/text"
	"github.com/weir-io/weir/internal/ui/tui"
)

func (a *app) trace(ctx context.Context, spec string, f *traceFlags) error {
	r := trace.Request{Kinds: f.kinds, Slower: f.slower, Files: f.files}
	if spec != "" {
		t, err := a.target(ctx, spec)
		if err != nil {
			return err
		}
		spec, r.Target = t.String(), &t
	} else if err := a.open(); err != nil {
		return err
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	s, err := trace.Start(a.host, r)
	if err != nil {
		return err
	}
	err = s.Run(ctx, func(ctx context.Context) error { return a.watchTrace(ctx, s, "tracing "+text.WhatOf(spec), f) })
	if by := endedBy(ctx); err != nil || by != nil {
		return a.abandonTrace(s, err, by)
	}
	t, err := s.End(context.WithoutCancel(ctx)) // SIGINT asks for the report
	if err != nil {
		return err
	}
	return a.reportTrace(t, f)
}

// watchTrace returns when the window is over, or a person or a signal ended it.
func (a *app) watchTrace(ctx context.Context, s *trace.Session, title string, f *traceFlags) error {
	if a.out.JSON || a.out.Quiet || !tui.CanShow(os.Stdin, os.Stdout) {
		a.out.Say("%s for %s", title, cli.Duration(f.window))
		return s.Wait(ctx, f.window)
	}
	frames, err := s.Frames()
	if err != nil {
		return err
	}
	return tui.Run(ctx, tui.Options{Title: title, Window: f.window, In: os.Stdin, Out: os.Stdout}, frames)
}

func (a *app) reportTrace(t trace.Traced, f *traceFlags) (err error) {
	if t.NoLimits != nil {
		a.out.Say("its limits are left out: %v", t.NoLimits)
	}
	if a.out.JSON {
		err = a.out.Document(api.TraceOf(t))
	} else {
		text.Trace(&a.out, t, f.kinds, f.verbose)
	}
	if err != nil || f.svg == "" {
		return err
	}
	return svg.Trace(f.svg, t)
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

// abandonTrace ends a trace without a report: after an error, or by a signal.
func (a *app) abandonTrace(s *trace.Session, err error, by *launch.SignalError) error {
	err = errors.Join(err, s.Close())
	if by == nil {
		return err
	}
	if err != nil {
		a.out.Fail(err)
	} else {
		a.out.Say("%s: ended early; nothing is left behind", by.Signal)
	}
	return &cli.StatusError{Status: cli.ExitCode(by)}
}
