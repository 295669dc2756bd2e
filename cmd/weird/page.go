package main

import (
	"net"
	"os"

	"github.com/weir-io/weir/internal/agent/metrics"
	"github.com/weir-io/weir/internal/host"
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
	return web.New(web.Options{Source: o.Feed, History: s.history, Name: name, Version: o.Version, AnyName: asks,
		Open: func() (*host.Host, error) { return host.Open(hostOptions(s.root)) }}), nil
}

// openPage refuses to show the page to everybody: it names groups, mounts and files, and reads for a
// question as root.
func openPage(at net.Addr) error {
	return cli.Usagef("--page at %s: every host that can reach it could read the page; listen at 127.0.0.1, or name a file with users by --web-config", at)
}
