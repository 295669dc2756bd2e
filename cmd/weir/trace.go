package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/prove"
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
	// verbose says what weir cannot show for each missing hook.
	verbose bool

	kinds []trace.Kind // ops, parsed
}

func newTrace(a *app) *cobra.Command {
	f := &traceFlags{}
	modes := &traceModes{}
	cmd := &cobra.Command{
		Use:   "trace [TARGET] [--for TIME]",
		Short: "Show where the time of slow I/O goes",
		Long: "Measure each read, write and fsync of files on disks, for a target's processes or for the whole host, and say where\n" +
			"the time went.\n\n" +
			"On a terminal, weir shows the figures while it measures. q, Ctrl-C or SIGINT end the trace early and print the report.\n" +
			"Any other signal ends it without a report, with exit status 128+n.",
		Example: "  weir trace\n" +
			"  weir trace docker:web --for 30s --svg web.svg\n" +
			"  weir trace unit:postgresql --slower 10ms --ops write,fsync --files",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("trace: one target at most; %d given", len(args))
			}
			if len(args) == 1 && args[0] == "" {
				return cli.Usagef("trace \"\": name a target, or leave it out for the whole host")
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
				return cli.Usagef("trace --root %s: weir traces the running kernel; leave out --root", a.root)
			}
			if err := f.check(); err != nil {
				return err
			}
			return a.trace(cmd.Context(), strings.Join(args, ""), f)
		},
	}
	cmd.Flags().DurationVar(&f.window, "for", traceFor, "trace for this `TIME`")
	cmd.Flags().DurationVar(&f.slower, "slower", 0, "list each operation that takes at least `TIME`")
	cmd.Flags().StringVar(&f.ops, "ops", "write,read,fsync,fault", "the `KINDS` of operations to trace")
	cmd.Flags().BoolVar(&f.files, "files", false, "add up the time by file")
	cmd.Flags().StringVar(&f.svg, "svg", "", "draw the latencies and their parts into `FILE`")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "say what cannot be shown for each kernel hook that is missing")
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
	if err := checkSVG(f.svg); err != nil {
		return err
	}
	if f.slower < 0 {
		return cli.Usagef("--slower %s: write a time, such as 1ms", f.slower)
	}
	for word := range strings.SplitSeq(f.ops, ",") {
		k, ok := trace.ParseKind(strings.TrimSpace(word))
		if !ok {
			return cli.Usagef("--ops %q: write some of write, read, fsync, fault", word)
		}
		if !slices.Contains(f.kinds, k) {
			f.kinds = append(f.kinds, k)
		}
	}
	return nil
}

// traceDocument is weir trace's JSON (docs/json.md).
type traceDocument struct {
	cli.Schema
	Target string `json:"target"` // empty: the whole host
	trace.Report
	// SlowCount is how many operations took longer than the threshold: of them the slowest
	// are listed.
	SlowCount uint64 `json:"slow_count"`
}

// what names the traced target.
func (d traceDocument) what() string {
	if d.Target == "" {
		return "the whole host"
	}
	return d.Target
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
			o.Group = groupOf(t)
		}
	} else if err := a.open(); err != nil {
		return err
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	tracer, err := trace.Open(o)
	if err != nil {
		return err
	}
	r := a.watchTrace(tracer, t, f)
	err = r.wait(ctx, a, "tracing "+doc.what())
	if by := endedBy(ctx); err != nil || by != nil {
		return r.abandon(a, err, by)
	}
	s, err := r.end(&doc)
	if err != nil {
		return err
	}
	if err := a.addLimits(context.WithoutCancel(ctx), &doc.Evidence, t); err != nil { // SIGINT asks for the report
		a.out.Say("its limits are left out: %v", err)
	}
	doc.Advice = doc.Advise()
	if a.out.JSON {
		err = a.out.Document(doc)
	} else {
		a.printTrace(doc, f)
	}
	if err != nil || f.svg == "" {
		return err
	}
	return drawTrace(f.svg, doc, &s)
}

// groupOf is a target's group; nil: there is no target.
func groupOf(t *target.Target) *cgroupfs.Group {
	if t == nil {
		return nil
	}
	return &t.Group
}

// addLimits puts the target's limits beside what was seen, and whether the pacer holds it,
// a group above it, or one below. A group that has gone meanwhile has no limits.
func (a *app) addLimits(ctx context.Context, e *trace.Evidence, t *target.Target) error {
	jobs, err := pacer.Holding(a.state)
	if t == nil {
		e.Paced = len(jobs) > 0
		return err
	}
	place := pacer.PlaceOf(t.Group, "blkio")
	e.Paced = slices.ContainsFunc(jobs, func(j pacer.Job) bool { return j.Limited.Holds(place) || place.Holds(j.Limited) })
	if err != nil {
		return err
	}
	bindings, err := prove.Bindings(t.Group)
	if err != nil && !cgroupfs.IsGone(err) {
		return err
	}
	for _, b := range bindings {
		if b.Limit.Bounds() {
			e.Limits = append(e.Limits, trace.DeviceLimit{Node: a.device(ctx, b.Device).Node, Device: b.Device, Limit: b.Limit.Bound()})
		}
	}
	return nil
}
