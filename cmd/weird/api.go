package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/routes"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

// apiMode lets everybody reach the sockets, whose own modes say who can connect.
const apiMode = 0o711

// apiDir is where the sockets of the API are; empty: nowhere. A weird that answers at another socket
// than usual is not the host's own.
func apiDir(asked, socket string) string {
	if asked == "" && socket == health.Socket {
		return routes.Dir
	}
	return asked
}

// listenAPI makes the sockets for reading and for changing.
func listenAPI(dir string, log *slog.Logger) (read, change *health.Listener, err error) {
	if err = os.Mkdir(dir, apiMode); err == nil || errors.Is(err, fs.ErrExist) && dir == routes.Dir {
		err = os.Chmod(dir, apiMode) // whatever the umask is
	} else if errors.Is(err, fs.ErrExist) {
		err = nil // it is somebody's, and so is its mode: /tmp, say
	}
	if err != nil {
		return nil, nil, err
	}
	one := func(name, group string) (*health.Listener, error) {
		path := filepath.Join(dir, name)
		gid := gidOf(group)
		if gid == nil {
			log.Info("only root can ask there: the group does not exist; weird install makes it", "socket", path, "group", group)
		}
		l, err := health.ListenFor(path, gid)
		if gid != nil && errors.Is(err, fs.ErrPermission) {
			log.Warn("only root can ask there: weird may not give the socket to the group; weird install adds SupplementaryGroups= to its unit", "socket", path, "group", group)
			return health.ListenFor(path, nil)
		}
		return l, err
	}
	if read, err = one(routes.ReadSocket, routes.ReadGroup); err != nil {
		return nil, nil, err
	}
	if change, err = one(routes.ChangeSocket, routes.ChangeGroup); err != nil {
		return nil, nil, errors.Join(err, read.Close())
	}
	return read, change, nil
}

// gidOf is the number of a group; nil: it does not exist.
func gidOf(name string) *int {
	g, err := user.LookupGroup(name)
	if err != nil {
		return nil
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return nil
	}
	return &gid
}

// serveAPI answers at both sockets until the context ends.
func serveAPI(ctx context.Context, a *agent.Agent, read, change *health.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	api := routes.New(a, routes.Options{Version: cli.Version(version), Spell: text.Error})
	var running sync.WaitGroup
	running.Go(func() { api.Run(ctx) })
	var errs [2]error
	for i, l := range []*health.Listener{read, change} {
		running.Go(func() {
			defer stop() // both or none
			errs[i] = health.ServeHandler(ctx, l, api.Handler(l == change))
		})
	}
	running.Wait()
	return errors.Join(errs[:]...)
}
