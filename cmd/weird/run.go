package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	goprocs "runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/agent/kube"
	"github.com/weir-io/weir/internal/agent/lograte"
	"github.com/weir-io/weir/internal/agent/nri"
	"github.com/weir-io/weir/internal/agent/routes"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/spare"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/ui/cli"
)

// The log has at most logPerSec lines a second over time, and logBurst at once.
const logPerSec, logBurst = 10, 200

// spareProcs are for the thread that gives newborn groups their rules: Go lets only so many threads run at once, and on a
// busy machine one that has its place waits for a processor for 10 ms and more.
const spareProcs = 4

// A runner is what the flags of weird run say, and opens the host.
type runner struct {
	plans, socket, root, nri, journal, probes, api, node string
	kube, volumes                                        bool
	open                                                 func(root string) (*host.Host, error)
}

func newRun(out *cli.Out) *cobra.Command {
	r := runner{open: func(root string) (*host.Host, error) { return host.Open(hostOptions(root)) }}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep plans in force on all targets, until stopped",
		Long: "Give each container, unit, pod and virtual machine the limits of its plan when it starts. Set them again when\n" +
			"somebody changes them. This goes on until SIGTERM or Ctrl-C; the limits stay when weird ends. weir plan check and weir plan list\n" +
			"read the same plans.\n\n" +
			"weird loads the plans again on SIGHUP and when their files change, all of them or none. weird status shows which limits\n" +
			"are in force. weird tells systemd when it is ready and that it lives (Type=notify, WatchdogSec=).",
		Example: "  weird run\n  weird run --plans ./plans.d\n  weird run --nri " + nri.Socket,
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return r.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&r.plans, "plans", "", "the `PATH` of a file or directory of plans; by default "+planned.Dir)
	cmd.Flags().StringVar(&r.socket, "socket", health.Socket, "the `PATH` of the socket that weird status connects to")
	cmd.Flags().StringVar(&r.nri, "nri", "", "have the container runtime at the `SOCKET`, usually "+nri.Socket+", ask weird before it starts a pod's container")
	journalFlag(cmd, &r.journal)
	cmd.Flags().StringVar(&r.probes, "probes", "", "answer "+health.LiveRoute+" and "+health.ReadyRoute+" over HTTP at this `ADDRESS`, such as :9848, for Kubernetes")
	cmd.Flags().StringVar(&r.api, "api", "", "the `DIR` with the sockets of the API; by default "+routes.Dir+", or none with another --socket than usual")
	cmd.Flags().BoolVar(&r.kube, "kube-api", false, "follow changes of pods' annotations at Kubernetes' API server, and report there whether limits are in force; weird has to run in a pod with a service account")
	cmd.Flags().BoolVar(&r.volumes, "volume-limits", false, "with --kube-api, also set the limits that ceph-csi, OpenEBS LVM and LINSTOR store for volumes")
	cmd.Flags().StringVar(&r.node, "node", os.Getenv("NODE_NAME"), "the `NAME` of this node, for --kube-api; by default $NODE_NAME")
	cmd.Flags().StringVar(&r.root, "root", "/", "read /proc and /sys below `DIR`")
	return cmd
}

func (r runner) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGINT)
	defer stop()
	goprocs.GOMAXPROCS(goprocs.GOMAXPROCS(0) + spareProcs)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, unix.SIGHUP) // first of all: until then SIGHUP ends the process
	defer signal.Stop(hangups)
	lines := slog.NewTextHandler(os.Stderr, nil)
	log := slog.New(lograte.New(lines, logPerSec, logBurst))
	var runtime func(agent.RuntimeOptions) agent.Runtime
	if r.nri != "" {
		runtime = func(o agent.RuntimeOptions) agent.Runtime { return nri.New(r.nri, o) }
	}
	cluster, err := r.cluster()
	if err != nil {
		return err
	}
	a, err := agent.New(agent.Options{Root: r.root, Plans: r.plans, Read: planfile.Read, Log: log, Runtime: runtime, Cluster: cluster, Version: cli.Version(version),
		Journal: journal.New(journalDir(r.root, r.journal), log),
		Open:    func() (*host.Host, error) { return r.open(r.root) }})
	if err != nil {
		return err
	}
	services, err := r.services(ctx, a, log)
	if err != nil {
		return err
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, fail := context.WithCancel(ctx)
	defer fail()
	answered := make(chan error, len(services))
	for _, serve := range services {
		beside.Go(func() {
			defer fail() // without its socket nobody can ask it
			answered <- serve(ctx)
		})
	}
	beside.Go(func() { reloads(ctx, a, hangups) })
	beside.Go(func() { spare.Collect(ctx, gcPercent) })
	beside.Go(func() { watchdog(ctx, func() bool { return a.Live() == nil }) })
	err = a.Run(ctx, func() {
		slog.New(lines).Info("ready", "socket", r.socket) // after any number of targets
		notify("READY=1")
		debug.FreeOSMemory()
		beside.Go(func() { spare.GiveBack(ctx) })
	})
	notify("STOPPING=1")
	for range services {
		err = errors.Join(err, <-answered)
	}
	return err
}

// cluster makes what asks Kubernetes' API server; nil: nobody does.
func (r runner) cluster() (func(agent.ClusterOptions) agent.Cluster, error) {
	switch {
	case !r.kube && r.volumes:
		return nil, cli.Usagef("--volume-limits: the limits of volumes are in Kubernetes' API server; add --kube-api")
	case !r.kube:
		return nil, nil
	case r.nri == "":
		return nil, cli.Usagef("--kube-api: annotations of pods count with --nri only; add it")
	case r.node == "":
		return nil, cli.Usagef("--kube-api: the name of this node is not known; add --node NAME, or set NODE_NAME")
	}
	client, err := kube.InCluster(os.Getenv)
	if err != nil {
		return nil, err
	}
	return func(o agent.ClusterOptions) agent.Cluster { return kube.New(client, r.node, r.volumes, o) }, nil
}

// services listen where weird answers. What they return answers until the context ends.
func (r runner) services(ctx context.Context, a *agent.Agent, log *slog.Logger) (all []func(context.Context) error, err error) {
	l, err := health.Listen(r.socket)
	if err != nil {
		return nil, err
	}
	all = append(all, func(ctx context.Context) error {
		return health.Serve(ctx, l, cli.Version(version), health.Documents{
			health.StatusRoute: func() any { return api.AgentOf(a.Status()) },
			health.CountsRoute: func() any { return api.AgentCountsOf(a.Counts()) },
		})
	})
	open := []io.Closer{l}
	if r.probes != "" {
		probes, err := listen(ctx, "probes", r.probes)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		open = append(open, probes)
		all = append(all, func(ctx context.Context) error {
			return health.ServeProbes(ctx, probes, health.Probes{Live: a.Live, Ready: a.Ready})
		})
	}
	if dir := apiDir(r.api, r.socket); dir != "" {
		read, change, err := listenAPI(dir, log)
		if err != nil {
			for _, l := range open {
				err = errors.Join(err, l.Close())
			}
			return nil, fmt.Errorf("make the sockets of the API: %w", err)
		}
		all = append(all, func(ctx context.Context) error { return serveAPI(ctx, a, read, change) })
	}
	return all, nil
}

// reloads loads the plans again on each SIGHUP.
func reloads(ctx context.Context, a *agent.Agent, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			_ = a.Reload() // it is in the log
		}
	}
}

// watchdog tells systemd that the agent lives, twice in the time that systemd gives it
// (sd_watchdog_enabled(3)). systemd ends and starts one that it does not hear of.
func watchdog(ctx context.Context, lives func() bool) {
	most, err := strconv.ParseUint(os.Getenv("WATCHDOG_USEC"), 10, 40)
	if err != nil || most == 0 {
		return // systemd does not ask for it
	}
	tick := time.NewTicker(time.Duration(most) * time.Microsecond / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if lives() {
				notify("WATCHDOG=1")
			}
		}
	}
}

// notify tells systemd, where systemd has started this process (sd_notify(3)).
func notify(state string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return // systemd ends a service that it does not hear of
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}
