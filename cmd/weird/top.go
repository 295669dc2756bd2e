package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/spare"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/look/explain"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/top"
	"github.com/weir-io/weir/internal/ui/top/live"
	"github.com/weir-io/weir/internal/ui/tui"
)

// everyLeast is the shortest time between two readings.
const everyLeast = 100 * time.Millisecond

// topDetails bounds what a reading costs where many groups move: see watch.Options.
const topDetails = 200

// A topView is what the flags of weird top say.
type topView struct {
	top.Options
	sort, root  string
	at, history string
	every       time.Duration
	once        bool
}

func newTop(out *cli.Out) *cobra.Command {
	v := topView{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what groups read and write, beside their limits",
		Long: "Show each cgroup that has a limit or does I/O. For each, weir shows its rates, the percentage of its nearest limit, how long its tasks wait\n" +
			"for I/O, its dirty pages, and which I/O the limit is expected to hold. ? lists the keys.\n\n" +
			"If standard output is no terminal, or with --once, print one table. With --json, print one document. The rates are\n" +
			"then measured over the time that --every names. No daemon has to run, except to record history for --at.",
		Example: "  weir top\n  weir top --once --sort write\n  weir top --filter docker: --every 5s",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.run(cmd.Context(), out) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&v.once, "once", false, "print one table and exit")
	flags.BoolVar(&out.JSON, "json", false, "print one JSON document (docs/json.md)")
	flags.DurationVar(&v.every, "every", time.Second, "the `TIME` between two readings")
	flags.StringVar(&v.sort, "sort", string(top.Limit), "sort by `COLUMN`: target, read, write, limit, wait or dirty")
	flags.BoolVar(&v.Reverse, "reverse", false, "reverse the order")
	flags.BoolVar(&v.Tree, "tree", false, "show the groups as a tree")
	flags.StringVar(&v.Filter, "filter", "", "show only groups with this `TEXT` in their names or paths")
	flags.BoolVar(&v.Active, "active", false, "show only groups that do I/O")
	flags.BoolVar(&v.All, "all", false, "show also groups that have no limit and do no I/O")
	flags.StringVar(&v.at, "at", "", "print one table of the past, at this `TIME`: how long ago (2h), a time of day (03:10), or a day and a time")
	historyFlag(cmd, &v.history, history.Dir)
	flags.StringVar(&v.root, "root", "/", "read /proc and /sys below `DIR`")
	return cmd
}

func (v topView) run(ctx context.Context, out *cli.Out) (err error) {
	if v.Sort, err = top.ParseColumn(v.sort); err != nil {
		return err
	}
	if v.every < everyLeast {
		return cli.Usagef("--every %s: write %s or more", v.every, everyLeast)
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	if v.at != "" {
		return v.past(ctx, out)
	}
	h, err := host.Open(hostOptions(v.root))
	if err != nil {
		return err
	}
	show, details, follow := v.print, 0, false // once, all groups can be looked at
	if !v.once && !out.JSON && tui.CanShow(os.Stdin, os.Stdout) {
		show, details, follow = v.live, topDetails, true
	}
	w, err := limiting.Manager{Host: h}.Watch(details, follow)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	return errors.Join(show(ctx, out, w), w.Close(), h.Close())
}

// live shows the screen.
func (v topView) live(ctx context.Context, _ *cli.Out, w *watch.Watcher) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT) // Ctrl-C is a key
	defer stop()
	runtime.GOMAXPROCS(1) // it waits most of the time, and Go has threads of other processors look for work each time that it does not
	beside.Go(func() { spare.GiveBack(ctx) })
	names := v.plans()
	defer names.Close()
	plans := func(s *watch.Snapshot) map[string]string {
		names.Refresh(s)
		return names.Now()
	}
	return live.Run(ctx, live.Options{Every: v.every, In: os.Stdin, Out: os.Stdout, Sample: w.Sample, Why: v.why, Plans: plans,
		Screen: top.Screen{Options: v.Options, Color: os.Getenv("NO_COLOR") == ""}})
}

// plans are the names of groups' plans.
func (v topView) plans() *planned.Names {
	return planned.NewNames(func() (*host.Host, error) { return host.Open(hostOptions(v.root)) }, planfile.Read)
}

// whyMost bounds a question to weir why.
const whyMost = 20 * time.Second

// why asks weir why about a target. The host is opened for it alone, because facts are read in all
// corners of it.
func (v topView) why(ctx context.Context, target string) (all []why.Finding, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, whyMost, fmt.Errorf("not done within %v", whyMost))
	defer cancel()
	h, err := host.Open(hostOptions(v.root))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	facts, _, err := explain.Facts(ctx, h, explain.Request{Subject: target, Planned: planned.SetFor(h)})
	if err != nil {
		return nil, err
	}
	return why.Judge(facts).Findings, nil
}

// print reads twice, and prints what happened between.
func (v topView) print(ctx context.Context, out *cli.Out, w *watch.Watcher) error {
	first, err := w.Sample(ctx)
	if err != nil {
		return err
	}
	names := v.plans()
	defer names.Close()
	names.Refresh(first)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(v.every):
	}
	s, err := w.Sample(ctx)
	if err != nil {
		return err
	}
	return v.printOne(out, s, names.Wanted(ctx, s))
}

// past prints what was at some time, from the history.
func (v topView) past(ctx context.Context, out *cli.Out) (err error) {
	when, err := history.ParseWhen("--at", v.at, time.Now())
	if err != nil {
		return err
	}
	r, err := history.Open(v.history)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	s, err := r.At(ctx, when)
	if err != nil {
		return err
	}
	return v.printOne(out, s, nil) // which plan a group had was not recorded
}

// printOne prints one snapshot.
func (v topView) printOne(out *cli.Out, s *watch.Snapshot, plans map[string]string) error {
	if out.JSON {
		return out.Document(api.TopOf(s, v.Takes, plans))
	}
	width := 0
	if cli.IsTerminal(os.Stdout) {
		if size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ); err == nil {
			width = int(size.Col)
		}
	}
	out.Text(top.Table(s, v.Options, plans, width))
	return nil
}
