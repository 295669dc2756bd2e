package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/trace"
)

const (
	traceFor     = 10 * time.Second
	traceForMost = time.Hour
)

// traceFlags are the flags of weir trace.
type traceFlags struct {
	window time.Duration
	slower time.Duration
	ops    string
	files  bool
	svg    string

	kinds []trace.Kind // ops, parsed
}

func newTrace(a *app) *cobra.Command {
	f := &traceFlags{}
	modes := &traceModes{}
	cmd := &cobra.Command{
		Use:   "trace [TARGET] [--for TIME]",
		Short: "Say where the time of slow I/O went",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("trace: one target at most; %d given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := modes.check(cmd); err != nil {
				return err
			}
			if modes.chosen() {
				return a.traceMode(cmd, args, modes)
			}
			if a.root != "/" {
				return cli.Usagef("trace --root %s: it asks the running kernel; leave out --root", a.root)
			}
			if err := f.check(); err != nil {
				return err
			}
			return a.trace(cmd.Context(), strings.Join(args, ""), f)
		},
	}
	cmd.Flags().DurationVar(&f.window, "for", traceFor, "how long")
	cmd.Flags().DurationVar(&f.slower, "slower", 0, "list each operation that takes at least `TIME`")
	cmd.Flags().StringVar(&f.ops, "ops", "write,read,fsync,fault", "the `KINDS` of operations: these")
	cmd.Flags().BoolVar(&f.files, "files", false, "sums by file")
	modes.register(cmd)
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

// check refuses what contradicts itself, before anything is done.
func (f *traceFlags) check() error {
	if f.window < 100*time.Millisecond || f.window > traceForMost {
		return cli.Usagef("--for %s: write 100ms to %s", f.window, traceForMost)
	}
	if f.slower < 0 {
		return cli.Usagef("--slower %s: write a time, such as 1ms", f.slower)
	}
	for word := range strings.SplitSeq(f.ops, ",") {
		k, ok := trace.ParseKind(strings.TrimSpace(word))
		if !ok {
			return cli.Usagef("--ops %q: write some of write, read, fsync, fault", word)
		}
		f.kinds = append(f.kinds, k)
	}
	return nil
}

// traceDocument is weir trace's JSON (docs/json.md).
type traceDocument struct {
	cli.Schema
	Target string `json:"target"` // empty: the whole host
	trace.Report
}

func (a *app) trace(ctx context.Context, spec string, f *traceFlags) error {
	o := trace.Options{Kinds: f.kinds, Slower: f.slower, Files: f.files}
	doc := traceDocument{Schema: cli.SchemaOf("trace")}
	var t *target.Target
	if spec != "" {
		found, err := a.target(ctx, spec)
		if err != nil {
			return err
		}
		t, doc.Target = &found, found.String()
		if o.PID = t.PID; o.PID == 0 {
			o.Group = &t.Group
		}
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	tracer, err := trace.Open(o)
	if err != nil {
		return err
	}
	a.out.Say("tracing for %s", cli.Duration(f.window))
	progress := cli.NewProgress(os.Stderr)
	defer progress.Clear()
	select {
	case <-ctx.Done():
	case <-time.After(f.window):
	}
	s, err := tracer.Snapshot()
	if err = errors.Join(err, tracer.Close()); err != nil {
		return err
	}
	doc.Report = s.Report(&trace.Snapshot{}, f.kinds)
	doc.Missing = append(doc.Missing, tracer.Missing...)
	if a.out.JSON {
		return a.out.Document(doc)
	}
	a.printTrace(doc)
	return nil
}
