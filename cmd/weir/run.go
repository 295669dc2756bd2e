package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/running"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newRun(a *app) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [LIMITS] [--on PATH|DEVICE]... [--memory SIZE] [--name NAME] -- COMMAND...",
		Short: "Run a command under a limit",

		DisableFlagsInUseLine: true, // flags come before the command

		Long: "Run a command in a cgroup of its own, with the limits in force before it starts. weir passes signals and the terminal\n" +
			"on to the command, and exits with its status. The status is 127 if there is no such command, 126 if it cannot be\n" +
			"executed, and 128+n if signal n ended it. weir removes the cgroup when its last process has exited. On cgroup v2 it first waits until the\n" +
			"kernel has written back what the command left in memory.\n\n" +
			"Where the kernel does not hold buffered writes, as on cgroup v1, weir's pacer holds them (--hold auto). It pauses the\n" +
			"command's processes for short moments, so that together they write no more than --write allows. On cgroup v2 it pauses\n" +
			"them only for writes to files that the kernel charges to other cgroups, and it needs BPF to see those. A pause can cut\n" +
			"a read short, as a signal can. --hold kernel turns the pacer off.\n\n" +
			"weir passes a signal on to the command if it is sent to weir alone. Ctrl-C reaches the command directly, because the\n" +
			"terminal sends it to the whole process group, so weir does not send it again. Without a terminal, weir passes on every\n" +
			"signal that it gets. If a signal arrives before the command has started, weir cleans up and exits with 128+n.\n\n" +
			"If weir itself fails before the command starts, it exits with 1, 2 or 3 and a message that begins with \"weir:\".",
		Example: "  weir run --write 10MB/s --on /data -- ./import.sh\n" +
			"  weir run --read 50MiB/s --read-iops 500 -- tar cf /backup/home.tar /home",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("run: no command is given; write weir run --write 10MB/s -- COMMAND")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd.Context(), args, o)
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.limits.Register(cmd.Flags())
	cmd.Flags().StringVar(&o.memory, "memory", "", "limit the command's memory, including its page cache, to `SIZE`, such as 512MiB")
	cmd.Flags().StringVar(&o.name, "name", "", "`NAME` of the cgroup (default: chosen by weir)")
	cli.HoldFlag(cmd.Flags(), &o.hold, limit.HoldAuto)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print each file and line that would be written, and change nothing")
	o.plan.Register(cmd.Flags())
	a.cgroupFlag(cmd)
	return cmd
}

// runOptions are the flags of weir run.
type runOptions struct {
	limits       cli.Limits
	plan         cli.NamedPlan
	memory, name string
	hold         limit.Hold
	dryRun       bool
}

// request is what the flags ask for.
func (o *runOptions) request(a *app, args []string) (r running.Request, err error) {
	r = running.Request{Command: args, Hold: o.hold, Name: o.name}
	if r.Asked, err = o.plan.Resolve(&o.limits); err != nil {
		return r, err
	}
	if o.memory != "" {
		if r.Memory, err = limit.ParseSize(o.memory); err != nil {
			return r, cli.Usagef("--memory: %v", err)
		}
		if r.Memory < running.MemoryLeast {
			return r, cli.Usagef("--memory %s: a command needs at least %d kB", o.memory, running.MemoryLeast/1000)
		}
	}
	if err := launch.CheckName(o.name); err != nil {
		return r, cli.Usagef("--name %v", err)
	}
	if r.Version, err = a.want(); err != nil {
		return r, err
	}
	err = launch.Find(args[0])
	if err != nil && cli.IsUnit(args[0]) {
		return r, cli.Usagef("run: %q is no command; write a rate as one word, such as --write 10%s", args[0], args[0])
	}
	return r, err
}

func (a *app) run(ctx context.Context, args []string, o runOptions) error {
	r, err := o.request(a, args)
	if err == nil {
		r.Asked, err = a.planAsked(ctx, o.plan, "", r.Asked)
	}
	if err != nil {
		return err
	}
	if _, err := a.io(); err != nil {
		return err
	}
	run, err := running.Prepare(ctx, a.host, r)
	if err == nil && len(run.Decided.Places) == 0 && r.Memory == 0 {
		a.out.Say("no limit is named, so the command runs without one; add --read, --write, --read-iops or --write-iops")
	}
	a.sayNotes(run.Notes)
	if err != nil {
		return err
	}
	if o.dryRun {
		steps, err := run.Steps()
		if err != nil {
			return err
		}
		a.explain(run.Decided)
		return a.dryRun("run", steps)
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	notes, err := run.Ready(ctx)
	a.sayNotes(notes)
	if err != nil {
		return err
	}
	a.explain(run.Decided)
	a.sayNotes(run.Known())
	report, err := run.Do(ctx, running.Streams{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals})
	return a.afterRun(r, report, err)
}

// afterRun says what the command did, and ends as it did.
func (a *app) afterRun(r running.Request, report running.Report, err error) error {
	text.RunLeft(&a.out, report, r.Memory)
	if report.Complete {
		text.Run(&a.out, report)
		if a.out.JSON {
			err = errors.Join(a.out.Document(api.RunOf(report)), err)
		}
		text.RunDirty(&a.out, report)
	}
	if !report.Ended {
		return err
	}
	// Once the command has run, its status is what weir ends with.
	if err != nil {
		a.out.Fail(text.Error(err))
	}
	if report.Status != 0 {
		return &cli.StatusError{Status: report.Status}
	}
	return nil
}
