package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/metrics"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/spare"
	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/targets/engine"
	"github.com/weir-io/weir/internal/ui/cli"
)

// scrapeLeast is how old figures may be that several scrapers share. A scraper takes them for those
// of its own time, so they must not be old.
const scrapeLeast = 100 * time.Millisecond

// gcPercent keeps the memory small of what watches for months: collecting costs little beside reading.
const gcPercent = 30

// A metricsServer is what the flags of weird metrics say.
type metricsServer struct {
	listen, config, root, history, socket string
	page, trace                           bool
}

func newMetrics(out *cli.Out) *cobra.Command {
	s := metricsServer{}
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Serve limits and the I/O under them to Prometheus",
		Long: "Serve the counters and limits of all limited cgroups in Prometheus' format at http://ADDRESS" + metrics.Route + ", until\n" +
			"SIGTERM or Ctrl-C. Add ?groups=all to the path for all cgroups that have done I/O. docs/metrics.md lists the metrics.\n\n" +
			"weird reads the cgroups at each scrape, and each second with --history or as long as a browser shows the page. It changes no limit. By default only programs\n" +
			"of this host can connect. To serve other hosts, use --listen, and name a file with TLS keys and users by --web-config\n" +
			"(the web configuration of Prometheus' exporters).",
		Example: "  weird metrics\n  weird metrics --page --history " + history.Dir + "\n  weird metrics --listen :9847 --web-config /etc/weir/web.yml",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.serve(cmd.Context(), out) },
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&s.listen, "listen", metrics.Address, "the `ADDRESS` to serve at, HOST:PORT")
	return cmd
}

// flags adds those that are not about the address.
func (s *metricsServer) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.config, "web-config", "", "a `FILE` with TLS keys and users")
	cmd.Flags().StringVar(&s.history, "history", "", "record the I/O and limits of cgroups in `DIR`, such as "+history.Dir+"; weir history and weir top --at show them")
	cmd.Flags().BoolVar(&s.page, "page", false, "also serve a page for browsers at http://ADDRESS/: groups beside their limits, live and, with --history, of the past")
	cmd.Flags().BoolVar(&s.trace, "page-trace", false, "let everybody who can open the page trace a group for some seconds, as weir trace does")
	cmd.Flags().StringVar(&s.socket, "socket", health.Socket, "the `PATH` of the socket of weird run, whose counters are among the metrics")
	cmd.Flags().StringVar(&s.root, "root", "/", "read /proc and /sys below `DIR`")
}

func (s metricsServer) serve(ctx context.Context, out *cli.Out) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	defer stop()
	debug.SetGCPercent(gcPercent)
	if s.trace && !s.page {
		return cli.Usagef("--page-trace: weird traces for the page alone; add --page")
	}
	o := metrics.Options{Version: cli.Version(version), Config: s.config}
	if err := o.Check(); err != nil {
		return err
	}
	h, err := host.Open(hostOptions(s.root))
	if err != nil {
		return err
	}
	w, err := limiting.Manager{Host: h}.Watch(s.details(), true)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	o.Pacer = h.Pacer().Sums
	beside.Go(func() { spare.GiveBack(ctx) })
	return errors.Join(s.feed(ctx, out, o, w), w.Close(), h.Close())
}

// open opens the host for one question, because the watcher uses the other one.
func (s metricsServer) open() (*host.Host, error) { return host.Open(hostOptions(s.root)) }

// details bounds a reading that happens each second (watch.Options); a scrape has all.
func (s metricsServer) details() int {
	if s.history != "" || s.page {
		return topDetails
	}
	return 0
}

// feed answers, and records if that is asked for, until the context ends or one of them fails.
func (s metricsServer) feed(ctx context.Context, out *cli.Out, o metrics.Options, w *watch.Watcher) error {
	o.Feed = metrics.NewFeed(w, scrapeLeast)
	o.Agent = func(ctx context.Context) (c api.AgentCounts, err error) {
		err = health.Ask(ctx, s.socket, health.CountsRoute, &c)
		return c, err
	}
	o.Targets = func(ctx context.Context) ([]api.AgentTarget, error) {
		var doc api.Agent
		err := health.Ask(ctx, s.socket, health.StatusRoute, &doc)
		return doc.Targets, err
	}
	o.Quotas = &metrics.Quotas{List: s.quotas}
	o.Plans = planned.NewNames(s.open, planfile.Read)
	defer o.Plans.Close()
	if s.page {
		page, err := s.newPage(o)
		if err != nil {
			return err
		}
		defer page.Close()
		o.Page = page
	}
	if s.history == "" {
		return s.answer(ctx, out, o)
	}
	levels := history.Levels()
	r, err := history.Record(s.history, levels)
	if err != nil {
		return err
	}
	out.Say("recording in %s; the files have %s and never grow", s.history, limit.FormatMeasured(float64(history.Size(levels))))
	debug.FreeOSMemory() // what was recorded before took more to read than to go on with
	recording := &recording{out: out, r: r}
	o.Feed.Each(recording.add) // also what is read for a scrape: the windows follow each other
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		recording.run(ctx, o.Feed)
	}()
	err = s.answer(ctx, out, o)
	stop()
	<-ended
	return errors.Join(err, r.Close())
}

// quotas lists those of the host. Of a copy of a host, and to others than root, the kernel shows none.
func (s metricsServer) quotas(ctx context.Context) (all []quota.Status, err error) {
	h, err := s.open()
	if err != nil {
		return nil, err
	}
	all, err = space.Quotas{Host: h}.List(ctx)
	return all, errors.Join(err, h.Close())
}

// answer serves until the context ends.
func (s metricsServer) answer(ctx context.Context, out *cli.Out, o metrics.Options) error {
	asks, err := o.AsksWho()
	scheme, unread := o.Scheme()
	if err := errors.Join(err, unread); err != nil {
		return err
	}
	l, err := listen(ctx, "listen", s.listen)
	if err != nil {
		return err
	}
	at, is := l.Addr().(*net.TCPAddr)
	open := is && !at.IP.IsLoopback() && !asks
	if open && s.page {
		return errors.Join(openPage(l.Addr()), l.Close())
	}
	out.Say("serving metrics at %s, path %s (%s)", l.Addr(), metrics.Route, scheme)
	if s.page {
		out.Say("showing the page at %s", pageURL(scheme, l.Addr()))
	}
	if open {
		out.Say("note: every host that can reach %s can read them; name TLS keys and users with --web-config", l.Addr())
	}
	return metrics.Serve(ctx, l, o)
}

// listen listens at the address that a flag has.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, cli.Usagef("--%s %q: write HOST:PORT, such as %s", flag, address, metrics.Address)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, cause(err))
	}
	return l, nil
}

// cause is the kernel's answer, without what package net puts around it.
func cause(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// hostOptions are what the environment says of the host.
func hostOptions(root string) host.Options {
	o := host.Options{Root: root, Program: os.Executable, Helpers: helper.Of("weird", cli.Version(version), nil), Sockets: map[string]string{
		"containerd": os.Getenv("CONTAINERD_ADDRESS"), // as ctr has it
		"pod":        os.Getenv("CONTAINER_RUNTIME_ENDPOINT"),
	}}
	for _, m := range engine.Makers() {
		o.Sockets[m.Kind()] = m.Host()
	}
	return o
}
