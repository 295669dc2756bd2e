package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/host"
)

// Events, however many, do not put off the comparison: a root that was moved away is found, though
// its groups go on to tell.
func TestEventsDoNotPutOffTheComparison(t *testing.T) {
	k, _, _ := newSource(t, &docker{}, config)
	io, err := k.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	tr := &Tree{Options: k.options, Log: slog.New(slog.DiscardHandler), Changed: func(string, string) {}, resync: 200 * time.Millisecond}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- tr.follow(ctx, io, false, func() {}) }()
	for len(tr.Stats()) == 0 {
		time.Sleep(time.Millisecond)
	}
	top := filepath.Join(k.host.Root, "sys/fs/cgroup")
	if err := os.Rename(top, top+".moved"); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-failed:
			if !errors.Is(err, tree.ErrGone) {
				t.Error(err)
			}
			return
		case <-tick.C:
			if err := os.WriteFile(top+".moved/docker/"+webID+"/io.max", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The end of a group has its target looked at, and a container is not forgotten before that: what only
// has its id in its name, or is one of several groups of it, must not do that.
func TestAnEndIsLookedAt(t *testing.T) {
	k, _, _ := newSource(t, &docker{}, config)
	io, err := k.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	tr := &Tree{Options: k.options, Changed: func(kind, name string) { told = append(told, kind+":"+name) }}
	tr.Options.Ended = func(kind, name string) { told = append(told, "ended "+kind+":"+name) }
	tr.tell(io, []tree.Event{{Kind: tree.Ended, Path: "user.slice/docker-" + webID + ".scope"}, {Kind: tree.Ended, Path: "mine"}}, false)
	if want := []string{"docker:" + webID[:12], "ended containerd:", "containerd:"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}

// Where no group is yet, the first one is told of.
func TestTheFirstGroupIsToldOf(t *testing.T) {
	k, _, _ := newSource(t, &docker{}, config)
	io, err := k.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(k.host.Root, "sys/fs/cgroup")
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := os.RemoveAll(filepath.Join(top, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	told := make(chan string, 8)
	tr := &Tree{Options: k.options, Log: slog.New(slog.DiscardHandler), Changed: func(kind, name string) { told <- kind + ":" + name }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tr.follow(ctx, io, false, func() {}) }()
	if one := <-told; one != ":" {
		t.Error(one)
	}
	if err := os.Mkdir(top+"/mine", 0o700); err != nil {
		t.Fatal(err)
	}
	select {
	case one := <-told:
		if one != "containerd:" {
			t.Error(one)
		}
	case <-time.After(patience / 3):
		t.Error("nobody is told of the first group")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tr.endLater()
}

// Where the kernel drops events, somebody is told that writes of rules may have been missed.
func TestLostEventsAreTold(t *testing.T) {
	k, _, _ := newSource(t, &docker{}, config)
	io, err := k.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	var most int
	if _, err := fmt.Sscan(string(text), &most); err != nil || most > 1<<17 {
		t.Fatalf("the kernel keeps %s events (%v)", text, err)
	}
	var rules []*os.File
	for _, id := range []string{webID, dbID} {
		file, err := os.OpenFile(filepath.Join(k.host.Root, "sys/fs/cgroup/docker", id, "io.max"), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		rules = append(rules, file)
	}
	lost := make(chan bool, 1)
	tr := &Tree{Options: k.options, Log: slog.New(slog.DiscardHandler), Written: func(string, string, string) {}, Lost: func() { lost <- true }}
	tr.Changed = func(string, string) { // it is followed, and nothing is read yet
		for i := range most + 1 { // two of one file in a row would be one event
			if _, err := rules[i%2].WriteAt([]byte("\n"), 0); err != nil {
				t.Error(err)
				return
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tr.follow(ctx, io, false, func() {}) }()
	select {
	case <-lost:
	case <-time.After(patience):
		t.Error("nobody is told")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tr.endLater()
}

// Why cgroups cannot be watched is known until they are. All is looked at once when that begins, and the counts of what was
// followed are kept.
func TestWhyNothingIsFollowed(t *testing.T) {
	k, _, _ := newSource(t, &docker{}, config)
	told, open := make(chan string, 64), k.options.Open
	why := errors.New("too many open files")
	fails, heal := make(chan bool), make(chan bool)
	tr := &Tree{Options: k.options, Log: slog.New(slog.DiscardHandler), Changed: func(kind, name string) { told <- kind + ":" + name }, missed: 3,
		counts: map[string]tree.Stats{"/sys/fs/cgroup": {Missed: 4}}}
	tr.Options.Open = func() (*host.Host, error) {
		select {
		case fails <- true:
			return nil, why
		case <-heal:
			return open()
		}
	}
	if tr.Err() != nil || tr.Missed() != 7 {
		t.Errorf("%v, %d missed", tr.Err(), tr.Missed())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { tr.Run(ctx); close(done) }()
	<-fails
	<-fails
	<-tr.Begun()
	if err := tr.Err(); !errors.Is(err, why) || len(tr.Stats()) != 0 || tr.Missed() != 7 || len(told) != 1 || <-told != ":" {
		t.Errorf("%v, %+v, %d missed, %d told", err, tr.Stats(), tr.Missed(), len(told))
	}
	close(heal)
	for deadline := time.Now().Add(patience); tr.Err() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(tr.Err())
		}
	}
	cancel()
	<-done
}
