package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/latency"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/internal/place"
)

// latencyFlags are the flags of weir trace --latency.
type latencyFlags struct {
	dir, memory, size, svg string
	direct, verbose        bool
	limits                 cli.Limits

	memoryBytes uint64 // memory, parsed
	sizeBytes   uint64 // size, parsed
}

const (
	// latencyMemoryMin is what the writer, a weir, needs beside its page cache.
	latencyMemoryMin = 32 << 20
	// latencySizeMost bounds how much a run stores: 16 bytes for each write.
	latencySizeMost = 256 << 30
	// latencyKeep is left free of the file system.
	latencyKeep = 64 << 20
)

func (f *latencyFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "latency", "", "write a file into `DIR` in blocks of 64 KiB, without and with a memory limit, and show the time of each write")
	cmd.Flags().StringVar(&f.memory, "memory", "1GiB", "the memory limit for --latency: a `SIZE`")
	cmd.Flags().StringVar(&f.size, "size", "10GiB", "how much --latency writes in each run: a `SIZE`")
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
	if f.memoryBytes < latencyMemoryMin {
		return cli.Usagef("--memory %s: the writer needs at least %s", f.memory, limit.FormatSize(latencyMemoryMin))
	}
	if f.sizeBytes < latency.Block || f.sizeBytes > latencySizeMost {
		return cli.Usagef("--size %s: write 64KiB to %s", f.size, limit.FormatSize(latencySizeMost))
	}
	return nil
}

func (a *app) traceLatency(ctx context.Context, f *latencyFlags) error {
	if err := f.parse(); err != nil {
		return err
	}
	if _, err := a.io(); err != nil {
		return err
	}
	chain, places, err := a.latencyPlace(ctx, f)
	if err != nil {
		return err
	}
	version, err := a.want()
	if err != nil {
		return err
	}
	progress := cli.NewProgress(os.Stderr)
	e := latency.Experiment{Host: a.launchHost(), Dir: f.dir, Size: int64(f.sizeBytes), Memory: f.memoryBytes, Direct: f.direct, Changes: place.Changes(places), Version: version,
		Writer: []string{"/proc/self/exe", latency.WriterArg}, Stderr: os.Stderr, Progress: progress.Show}
	group, _, err := e.Host.Plan(e.Options(f.memoryBytes)) // is there a controller of memory?
	if err != nil {
		return err
	}
	decided, err := a.deciding().Decide(group, true, places, limit.HoldKernel)
	if err != nil {
		return err
	}
	a.explain(decided)
	a.sayDrainOf(f.memoryBytes, group, decided)
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	runs, err := e.Run(ctx)
	progress.Clear()
	var signaled *launch.SignalError
	if errors.As(context.Cause(ctx), &signaled) {
		if err := besidesSignal(err); err != nil {
			return err
		}
		a.out.Say("%s; nothing is left", signaled.Signal)
		return &cli.StatusError{Status: cli.ExitCode(signaled)}
	}
	if err != nil {
		return err
	}
	return a.reportLatency(latencyReport{dir: f.dir, chain: chain, version: group.Hierarchy().Version, places: places, runs: runs, flags: f})
}

// latencyPlace finds the device of the directory, and the limits that go there.
func (a *app) latencyPlace(ctx context.Context, f *latencyFlags) (chain blkdev.Chain, places []place.Placed, err error) {
	if info, err := os.Stat(f.dir); err != nil || !info.IsDir() {
		return chain, nil, cli.Usagef("--latency %s: name a directory, where a file without a name can be made", f.dir)
	}
	if chain, err = blkdev.New(a.root).Resolve(ctx, f.dir); err != nil {
		return chain, nil, err
	}
	if err := f.checkSpace(); err != nil {
		return chain, nil, err
	}
	limits, err := f.limits.Resolve()
	if err != nil {
		return chain, nil, err
	}
	for i := range limits {
		limits[i].On = f.dir
	}
	places, err = a.place(ctx, limits, nil)
	return chain, places, err
}

// checkSpace refuses a copy that the file system has no room for.
func (f *latencyFlags) checkSpace() error {
	var st unix.Statfs_t
	if err := unix.Statfs(f.dir, &st); err != nil {
		return &os.PathError{Op: "read free space of", Path: f.dir, Err: err}
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return &cgroupfs.Unsupported{Feature: "write into " + f.dir, Reason: "it is mounted read-only", Remedy: "name another directory"}
	}
	free := st.Bavail * uint64(st.Bsize)
	if free >= f.sizeBytes+latencyKeep {
		return nil
	}
	remedy := "name another directory"
	if fits := (free - min(free, latencyKeep)) >> 20; fits >= 1<<10 {
		remedy = "write --size " + limit.FormatSize(fits>>10<<30) + " or less, or name another directory"
	} else if fits > 0 {
		remedy = "write --size " + limit.FormatSize(fits<<20) + " or less, or name another directory"
	}
	return &cgroupfs.Unsupported{Feature: "write " + limit.FormatSize(f.sizeBytes) + " into " + f.dir,
		Reason: "the file system has " + limit.FormatMeasured(float64(free)) + " free, and weir leaves " + limit.FormatSize(latencyKeep) + " of that free", Remedy: remedy}
}

// newCopy is the writer of trace --latency. It is not for people.
func newCopy() *cobra.Command {
	return &cobra.Command{
		Use:    latency.WriterArg,
		Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := load.ParseCopy(args)
			if err != nil {
				return err
			}
			times, err := load.OpenLog(os.NewFile(3, "log of writes"))
			if err != nil {
				return err
			}
			return errors.Join(load.RunCopy(c, times), times.Close())
		},
	}
}
