package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/svg"
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
				return cli.Usagef("trace: name at most one target; %d are named", len(args))
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
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "list each kernel hook that is missing, and what weir cannot show without it")
	modes.register(cmd)
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

// check refuses what contradicts itself, before anything is done.
func (f *traceFlags) check() error {
	if f.window < 100*time.Millisecond || f.window > traceForMost {
		return cli.Usagef("--for %s: write 100ms to %s", cli.FlagTime(f.window), cli.FlagTime(traceForMost))
	}
	if err := svg.Check("--svg", f.svg); err != nil {
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
