package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/routes"
	"github.com/weir-io/weir/lab"
)

// The sockets are where everybody can reach them, and for groups that there are. Both are there, or none.
func TestListenAPI(t *testing.T) {
	lab.Unit(t)
	dir := filepath.Join(t.TempDir(), "weird")
	var log strings.Builder
	read, change, err := listenAPI(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != apiMode {
		t.Errorf("%v, %v", info, err)
	}
	for name, group := range map[string]string{routes.ReadSocket: routes.ReadGroup, routes.ChangeSocket: routes.ChangeGroup} {
		want := os.FileMode(0o660)
		if gidOf(group) == nil {
			want = 0o600
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want || (want == 0o600) != strings.Contains(log.String(), "group="+group+"\n") {
			t.Errorf("%v, %v\n%s", info, err, log.String())
		}
	}
	if err := errors.Join(read.Close(), change.Close()); err != nil {
		t.Error(err)
	}
	// A directory that is there keeps its mode: it may be /tmp.
	const others = os.ModeSticky | 0o777
	if err := os.Chmod(dir, others); err != nil {
		t.Fatal(err)
	}
	if read, change, err = listenAPI(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|others {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := errors.Join(read.Close(), change.Close()); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, routes.ChangeSocket), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := listenAPI(dir, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file is taken for a socket")
	}
	if _, err := os.Lstat(filepath.Join(dir, routes.ReadSocket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the other socket is left: %v", err)
	}
	if gidOf("no-such-group-here") != nil {
		t.Error("a group that is none")
	}
	for _, c := range [][3]string{{"", health.Socket, routes.Dir}, {"", "/tmp/s", ""}, {"/a", "/tmp/s", "/a"}} {
		if got := apiDir(c[0], c[1]); got != c[2] {
			t.Errorf("%q: %q", c, got)
		}
	}
}
