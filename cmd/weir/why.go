package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/why"
)

func newWhy(a *app) *cobra.Command {
	var o whyOptions
	cmd := &cobra.Command{
		Use:   "why [TARGET|PATH] [LIMITS] [--on PATH|DEVICE]...",
		Short: "Say which I/O a limit holds, which not, and why",
		Long: "Say which I/O of a target its limits hold, which they do not, and why. weir reads the system's state for that, and\n" +
			"runs no load. If you name limits, weir answers as if they were set. If you name a path or a device, weir answers for a\n" +
			"command that weir run would start there. Without an argument, weir describes this host.\n\n" +
			"On cgroup v2 the kernel charges the writeback of a file to the cgroup that dirtied the file first, so only the limits\n" +
			"of that cgroup apply. --mend moves such files to the target's cgroup: files that the target has open for writing, and\n" +
			"files that you name with --on. Moving a file changes its mtime and ctime and drops its clean pages from the page\n" +
			"cache, but never its contents. weir refuses to move a file if that could do harm, for example if a process has it open\n" +
			"for direct I/O. Without --mend, weir why changes nothing.\n\n" +
			"Exit codes: 0 everything is held; 1 something is not held; 2 wrong usage; 3 this host does not tell.",
		Example: "  weir why\n" +
			"  weir why /var/lib/mysql --write 5MB/s\n" +
			"  weir why unit:cron\n" +
			"  weir why cgroup:/batch --on /data/log --mend",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("why: one target or path at most; %d given", len(args))
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

// whyDocument is weir why's JSON (docs/json.md).
type whyDocument struct {
	cli.Schema
	why.Report
	Mended []movedDocument `json:"mended,omitempty"` // with --mend
}

func (a *app) why(ctx context.Context, subject string, o whyOptions) error {
	if o.dryRun && !o.mend {
		return cli.Usagef("why --dry-run: nothing is changed without --mend")
	}
	sources, err := a.whySources()
	if err != nil {
		return err
	}
	q, err := a.question(ctx, subject, o.limits)
	if err != nil {
		return err
	}
	if q.Hold != "" {
		q.Hold = o.hold
	}
	if o.mend && q.Target == nil {
		return cli.Usagef("why --mend: files are moved to a target's group; name one, such as unit:nginx, pid:4711 or cgroup:/batch, and a file with --on")
	}
	facts, err := why.Gather(ctx, sources, q)
	if err != nil {
		return err
	}
	var mended []movedDocument
	if o.mend {
		jobs, err := a.toMend(*q.Target, facts)
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
		err = a.out.Document(whyDocument{cli.SchemaOf("why"), report, mended})
	} else {
		a.printWhy(report)
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

// whySources are the host's. One without a controller of I/O is a finding, and no error.
func (a *app) whySources() (why.Sources, error) {
	h, err := a.io()
	var none *cgroupfs.Unsupported
	if err != nil && (!errors.As(err, &none) || a.fs == nil) {
		return why.Sources{}, err
	}
	s := why.Sources{Root: a.root, Groups: a.fs, Hierarchy: h, WhyNone: err, SystemdRuns: systemd.Running(a.root), Owners: a.owners}
	if s.SystemdRuns && a.root == "/" {
		s.UnitLimits = unitLimits
	}
	s.Pacer, s.KeptIn = a.deciding(), a.keptIn
	return s, nil
}

// question makes one of a subject, which is a target, a path or a device, and limits.
func (a *app) question(ctx context.Context, subject string, limits cli.Limits) (why.Question, error) {
	var places []limit.Asked
	if limits.HasRates() {
		var err error
		if places, err = limits.Resolve(); err != nil {
			return why.Question{}, err
		}
	} else {
		for _, place := range limits.Places() {
			places = append(places, limit.Asked{On: place})
		}
	}
	if subject == "" {
		return asked(nil, places), nil
	}
	t, err := a.subject(ctx, subject)
	if err != nil {
		return why.Question{}, err
	}
	if len(places) == 0 {
		places = []limit.Asked{{}}
	}
	if t != nil {
		if places, err = a.onOwnDisks(ctx, places, *t); err != nil {
			return why.Question{}, err
		}
		return asked(t, places), nil
	}
	for i, p := range places {
		if p.On != "" {
			return why.Question{}, cli.Usagef("why %s: the place is named already; leave out --on %s", subject, p.On)
		}
		places[i].On = subject
	}
	return asked(nil, places), nil
}

// asked makes a question about places. Places without a group are held as weir run and weir set
// would do by default.
func asked(t *target.Target, places []limit.Asked) why.Question {
	q := why.Question{Target: t}
	named := t == nil
	for _, p := range places {
		q.Places = append(q.Places, place.Spot{Asked: p})
		named = named || !p.Limit.IsZero()
	}
	if named {
		q.Hold = limit.HoldAuto
	}
	return q
}

// subject resolves a target; nil for a path or a device.
func (a *app) subject(ctx context.Context, spec string) (*target.Target, error) {
	if strings.HasPrefix(spec, "/") || strings.HasPrefix(spec, ".") {
		return nil, nil
	}
	t, err := a.target(ctx, spec)
	var unknown *target.NotFound
	if errors.As(err, &unknown) && !a.isTarget(spec) {
		return nil, nil // a device's name, or nothing's: then resolving it says so
	}
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// isTarget reports whether a spec begins with a kind of target.
func (a *app) isTarget(spec string) bool {
	h, err := a.io()
	if err != nil {
		return false
	}
	for _, k := range a.kinds(h) {
		if strings.HasPrefix(spec, k.Name()+":") {
			return true
		}
	}
	return false
}
