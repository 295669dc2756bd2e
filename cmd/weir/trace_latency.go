package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/look/latency"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/svg"
	"github.com/weir-io/weir/internal/ui/text"
)

// latencyFlags are the flags of weir trace --latency.
type latencyFlags struct {
	dir, memory, size, svg string
	direct, verbose        bool
	limits                 cli.Limits

	memoryBytes uint64 // memory, parsed
	sizeBytes   uint64 // size, parsed
}

func (f *latencyFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "latency", "", "write a file into `DIR` in blocks of 64 KiB, without and with a memory limit, and show the time of each write")
	cmd.Flags().StringVar(&f.memory, "memory", "1GiB", "`SIZE` of the memory limit for --latency")
	cmd.Flags().StringVar(&f.size, "size", "10GiB", "`SIZE` that --latency writes in each run")
	cmd.Flags().BoolVar(&f.direct, "direct", false, "with --latency, add a run with direct I/O under the same memory limit")
	f.limits.RegisterRates(cmd.Flags())
}

// parse reads the sizes.
func (f *latencyFlags) parse() (err error) {
	if f.memoryBytes, err = limit.ParseSize(f.memory); err != nil {
		return cli.Usagef("--memory: %v", err)
	}
	if f.sizeBytes, err = limit.ParseSize(f.size); err != nil {
		return cli.Usagef("--size: %v", err)
	}
	if f.memoryBytes < latency.MemoryMin {
		return cli.Usagef("--memory %s: the writer needs at least %s", f.memory, limit.FormatSize(latency.MemoryMin))
	}
	if f.sizeBytes < latency.Block || f.sizeBytes > latency.SizeMost {
		return cli.Usagef("--size %s: write 64KiB to %s", f.size, limit.FormatSize(latency.SizeMost))
	}
	return nil
}

func (a *app) traceLatency(ctx context.Context, f *latencyFlags) error {
	p, err := a.prepareLatency(ctx, f)
	if err != nil {
		return err
	}
	a.explain(p.Decision)
	a.sayNotes(limiting.Drain(a.host, p.Group, f.memoryBytes, p.Decision))
	progress := cli.NewProgress(os.Stderr)
	p.Writer, p.Stderr, p.Progress = []string{"/proc/self/exe", latency.WriterArg}, os.Stderr, progress.Show
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	r, err := p.Measure(ctx)
	progress.Clear()
	var signaled *launch.SignalError
	if errors.As(context.Cause(ctx), &signaled) {
		if err := launch.BesidesSignal(err); err != nil {
			return err
		}
		a.out.Say("%s: ended early; nothing is left behind", signaled.Signal)
		return &cli.StatusError{Status: cli.ExitCode(signaled)}
	}
	if err != nil {
		return err
	}
	return a.reportLatency(r, f)
}

// prepareLatency is what the flags ask for.
func (a *app) prepareLatency(ctx context.Context, f *latencyFlags) (p latency.Prepared, err error) {
	if err := f.parse(); err != nil {
		return p, err
	}
	if _, err := a.io(); err != nil {
		return p, err
	}
	r := latency.Request{Dir: f.dir, Size: f.sizeBytes, Memory: f.memoryBytes, Direct: f.direct}
	if r.Limits, err = f.limits.Resolve(); err != nil {
		return p, err
	}
	if r.Version, err = a.want(); err != nil {
		return p, err
	}
	p, err = latency.Prepare(ctx, a.host, r)
	var none *load.NoDirError
	if errors.As(err, &none) {
		err = fmt.Errorf("--latency %w", err)
	}
	return p, err
}

// reportLatency prints the runs, and draws them.
func (a *app) reportLatency(r latency.Report, f *latencyFlags) error {
	if a.out.JSON {
		if err := a.out.Document(api.LatencyOf(r, text.LatencyWords(r))); err != nil {
			return err
		}
	} else {
		text.Latency(&a.out, r, f.verbose)
	}
	if f.svg == "" {
		return nil
	}
	return svg.Latency(f.svg, r)
}
