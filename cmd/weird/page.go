package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/weir-io/weir/internal/agent/metrics"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/web"
)

// newPage makes the page that shows what the metrics are made of.
func (s metricsServer) newPage(o metrics.Options) (*web.Page, error) {
	asks, err := o.AsksWho()
	if err != nil {
		return nil, err
	}
	name, err := os.Hostname()
	if err != nil {
		name = "" // then it can be called by its address
	}
	page := web.Options{Source: o.Feed, History: s.history, Name: name, Version: o.Version, AnyName: asks, Open: s.open, Plans: o.Plans}
	if s.trace {
		page.Tracer = tracer{s.root}
	}
	return web.New(page), nil
}

// pageURL is what to open in a browser. At all addresses of the host the page is at the host's name.
func pageURL(scheme string, at net.Addr) string {
	host := at.String()
	if tcp, is := at.(*net.TCPAddr); is && tcp.IP.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = net.JoinHostPort(name, strconv.Itoa(tcp.Port))
		}
	}
	return scheme + "://" + host + "/"
}

// openPage refuses to show the page to everybody: it names groups, mounts and files, and reads for a
// question as root.
func openPage(at net.Addr) error {
	return cli.Usagef("--page at %s: every host that can reach it could read the page; listen at 127.0.0.1, or name a file with users by --web-config", at)
}

// A tracer traces groups for the page.
type tracer struct{ root string }

// Hindrance says why nothing can be traced.
func (t tracer) Hindrance() error {
	if t.root != "/" {
		return errors.New("weir traces the running kernel, and weird was started with --root")
	}
	return trace.Hindrance()
}

// Trace traces the group of a path. Files and single operations are not asked for.
func (t tracer) Trace(ctx context.Context, path string, window time.Duration) (told trace.Traced, err error) {
	h, err := host.Open(hostOptions(t.root))
	if err != nil {
		return told, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	target, err := h.Target(ctx, "cgroup:"+path)
	if err != nil {
		return told, err
	}
	s, err := trace.Start(h, trace.Request{Target: &target, Kinds: []trace.Kind{trace.Write, trace.Read, trace.Fsync, trace.Fault}})
	if err != nil {
		return told, err
	}
	err = s.Run(ctx, func(ctx context.Context) error { return errors.Join(s.Wait(ctx, window), context.Cause(ctx)) })
	if err != nil {
		return told, errors.Join(err, s.Close())
	}
	return s.End(ctx)
}
