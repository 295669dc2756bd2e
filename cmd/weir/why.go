package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/mend"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/explain"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newWhy(a *app) *cobra.Command {
	var o whyOptions
	cmd := &cobra.Command{
		Use:   "why [TARGET|PATH] [LIMITS] [--on PATH|DEVICE]...",
		Short: "Say which I/O a limit holds, which not, and why",
		Long: "Say which I/O of a target its limits hold, which they do not, and why. weir reads the system's state for that, and\n" +
			"runs no load. If you name limits, weir answers as if they were set. If you name a path or a device, weir answers for a\n" +
			"command that weir run would start there. Without an argument, weir describes this host.\n\n" +
			"On cgroup v2 the kernel charges the writeback of a file to the cgroup that dirtied the file first. Only the limits\n" +
			"of that cgroup apply. --mend moves such files to the target's cgroup: files that the target has open for writing, and\n" +
			"files that you name with --on. Moving a file changes its mtime and ctime and drops its clean pages from the page\n" +
			"cache, but never its contents. weir refuses to move a file if that could do harm, for example if a process has it open\n" +
			"for direct I/O. Without --mend, weir why changes nothing.\n\n" +
			"Exit codes: 0 everything is held; 1 something is not held; 2 wrong usage; 3 weir cannot tell.",
		Example: "  weir why\n" +
			"  weir why /var/lib/mysql --write 5MB/s\n" +
			"  weir why unit:cron\n" +
			"  weir why cgroup:/batch --on /data/log --mend",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("why: name at most one target or path; %d are named", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "" {
				return cli.Usagef("why \"\": name a target, a path or a device, or leave it out to ask about this host")
			}
			return a.why(cmd.Context(), strings.Join(args, ""), o)
		},
	}
	o.limits.Register(cmd.Flags())
	cli.HoldFlag(cmd.Flags(), &o.hold, limit.HoldAuto)
	cmd.Flags().BoolVar(&o.mend, "mend", false, "move files that the kernel charges to other cgroups to the target's cgroup")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "with --mend: print the files that would be moved, and change nothing")
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

// whyOptions are the flags of weir why.
type whyOptions struct {
	limits       cli.Limits
	hold         limit.Hold
	mend, dryRun bool
}

func (a *app) why(ctx context.Context, subject string, o whyOptions) error {
	if o.dryRun && !o.mend {
		return cli.Usagef("why --dry-run: nothing is changed without --mend")
	}
	if _, err := a.io(); a.host == nil {
		return err
	}
	sources, err := explain.Sources(a.host)
	if err != nil {
		return err
	}
	sources.Planned = planned.SetFor(a.host)
	q, err := a.question(ctx, subject, o)
	if err != nil {
		return err
	}
	facts, err := why.Gather(ctx, sources, q)
	if err != nil {
		return err
	}
	var mended []api.Moved
	if o.mend {
		jobs, err := mend.JobsOf(a.host.FS, *q.Target, facts)
		if err != nil {
			return err
		}
		if o.dryRun {
			return a.mendDryRun(jobs)
		}
		if mended, err = a.mend(ctx, jobs); err != nil {
			return err
		}
		if facts, err = why.Gather(ctx, sources, q); err != nil {
			return err
		}
	}
	report := why.Judge(facts)
	if a.out.JSON {
		err = a.out.Document(api.WhyOf(report, mended))
	} else {
		text.Why(&a.out, report)
	}
	return errors.Join(err, whyStatus(report))
}

func whyStatus(r why.Report) error {
	worst := r.Worst()
	switch {
	case r.Group == nil, worst == why.Unknown:
		return &cli.StatusError{Status: cli.ExitUnsupported}
	case worst == why.No:
		return &cli.StatusError{Status: cli.ExitNotDone}
	}
	return nil
}

// question makes one of a subject and the flags.
func (a *app) question(ctx context.Context, subject string, o whyOptions) (q why.Question, err error) {
	r := explain.Request{Subject: subject, Hold: o.hold}
	if o.limits.HasRates() {
		if r.Asked, err = o.limits.Resolve(); err != nil {
			return q, err
		}
	} else {
		for _, place := range o.limits.Places() {
			r.Asked = append(r.Asked, limit.Asked{On: place})
		}
	}
	q, notes, err := explain.QuestionOf(ctx, a.host, r)
	a.sayNotes(notes)
	if err == nil && o.mend && q.Target == nil {
		err = cli.Usagef("why --mend: files are moved to a target's group; name one, such as unit:nginx, pid:4711 or cgroup:/batch, and a file with --on")
	}
	return q, err
}
