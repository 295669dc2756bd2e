package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/routes"
	"github.com/weir-io/weir/internal/agent/stream"
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

// readingsMost bounds how many readings a table waits for.
const readingsMost = 3

// topDetails bounds what a reading costs where many groups move: see watch.Options.
const topDetails = 200

// A topView is what the flags of weird top say.
type topView struct {
	top.Options
	sort, root  string
	at, history string
	socket      string
	named       bool // the socket was
	every       time.Duration
	once, alone bool
}

func newTop(out *cli.Out) *cobra.Command {
	v := topView{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what groups read and write, beside their limits",
		Long: "Show each cgroup that has a limit or does I/O. For each, weir shows its rates, the percentage of its nearest limit, how long its tasks wait\n" +
			"for I/O, its dirty pages, and which I/O the limit is expected to hold. ? lists the keys.\n\n" +
			"If standard output is no terminal, or with --once, print one table. With --json, print one document. The rates are\n" +
			"then measured over the time that --every names. No daemon has to run, except to record history for --at.\n\n" +
			"Where weird run runs, and you may ask it (as root, or in the group weir-read or weir), the figures are those that weird reads each\n" +
			"second, with the plans that it keeps and what it has measured of limits. Otherwise weir top reads by itself. So it does with\n" +
			"another --every than 1s, another --root, or --alone.",
		Example: "  weir top\n  weir top --once --sort write\n  weir top --filter docker: --every 5s",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v.named = cmd.Flags().Changed("socket")
			return v.run(cmd.Context(), out)
		},
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
	flags.StringVar(&v.socket, "socket", filepath.Join(routes.Dir, routes.ReadSocket), "the `PATH` of the socket at which weird run tells what groups do")
	flags.BoolVar(&v.alone, "alone", false, "read by itself, also where weird run tells what groups do")
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
	o := stream.Options{Every: v.every}
	if v.every == stream.Every && !v.alone && (v.root == "/" || v.named) {
		if o.Socket = v.socket; !v.named {
			o.Also = filepath.Join(routes.Dir, routes.ChangeSocket)
		}
	}
	if v.once || out.JSON || !tui.CanShow(os.Stdin, os.Stdout) {
		o.Open = func() (stream.Own, error) { return v.open(0, false) } // once, all groups can be looked at
		return v.with(o, func(next func(context.Context) (top.View, error)) error { return v.print(ctx, out, next) })
	}
	o.Open = func() (stream.Own, error) { return v.open(topDetails, true) }
	return v.with(o, func(next func(context.Context) (top.View, error)) error { return v.live(ctx, next) })
}

// with shows what a source has.
func (v topView) with(o stream.Options, show func(next func(context.Context) (top.View, error)) error) error {
	s := stream.New(o)
	next := func(ctx context.Context) (top.View, error) {
		r, err := s.Next(ctx)
		return top.View{Snapshot: r.Snapshot, Plans: r.Plans, Told: r.Told, Source: top.Source(r.Source)}, err
	}
	return errors.Join(show(next), s.Close())
}

// live shows the screen.
func (v topView) live(ctx context.Context, next func(context.Context) (top.View, error)) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT) // Ctrl-C is a key
	defer stop()
	runtime.GOMAXPROCS(1) // it waits most of the time, and Go has threads of other processors look for work each time that it does not
	beside.Go(func() { spare.GiveBack(ctx) })
	return live.Run(ctx, live.Options{In: os.Stdin, Out: os.Stdout, Next: next, Why: v.why,
		Screen: top.Screen{Options: v.Options, Color: os.Getenv("NO_COLOR") == ""}})
}

// An ownTop reads where weird does not tell.
type ownTop struct {
	*watch.Watcher
	host  *host.Host
	names *planned.Names
	once  bool
}

func (v topView) open(details int, follow bool) (*ownTop, error) {
	h, err := host.Open(hostOptions(v.root))
	if err != nil {
		return nil, err
	}
	w, err := limiting.Manager{Host: h}.Watch(details, follow)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	names := planned.NewNames(func() (*host.Host, error) { return host.Open(hostOptions(v.root)) }, planfile.Read)
	return &ownTop{w, h, names, !follow}, nil
}

// Plans are the names of groups' plans. A screen does not wait for them, and a table does not in its first reading.
func (o *ownTop) Plans(ctx context.Context, s *watch.Snapshot) map[string]string {
	if o.once && s.Window > 0 {
		return o.names.Wanted(ctx, s)
	}
	o.names.Refresh(s)
	return o.names.Now()
}

func (o *ownTop) Close() error {
	o.names.Close()
	return errors.Join(o.Watcher.Close(), o.host.Close())
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

// print prints the first reading that has rates: the second one, if weird does not tell.
func (v topView) print(ctx context.Context, out *cli.Out, next func(context.Context) (top.View, error)) error {
	for range readingsMost - 1 {
		if now, err := next(ctx); err != nil || now.Snapshot.Window > 0 {
			return errors.Join(err, v.printOne(out, now))
		}
	}
	now, err := next(ctx)
	return errors.Join(err, v.printOne(out, now))
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
	return v.printOne(out, top.View{Snapshot: s, Source: top.Source{From: api.FromHistory}}) // which plan a group had was not recorded
}

// printOne prints one reading; the zero View: nothing.
func (v topView) printOne(out *cli.Out, now top.View) error {
	if now.Snapshot == nil {
		return nil
	}
	if out.JSON {
		return out.Document(api.TopOf(now.Snapshot, v.Takes, besideOf(now)))
	}
	width := 0
	if cli.IsTerminal(os.Stdout) {
		if size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ); err == nil {
			width = int(size.Col)
		}
	}
	out.Text(top.Table(now, v.Options, width))
	return nil
}

// besideOf is what is known beside a reading, for its document.
func besideOf(v top.View) api.TopBeside {
	return api.TopBeside{Source: api.TopSource(v.Source), Plans: v.Plans, Held: func(path string) *api.AgentHeld {
		told, is := v.Told[path]
		if !is {
			return nil
		}
		doc := api.HeldOf(agent.Held{Verdict: told.Verdict, Finding: agent.Finding{Code: told.Code, Text: told.Why}})
		return &doc
	}}
}
