package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A followed tree, and what its events say is there.
type followed struct {
	*Tree
	t    *testing.T
	dir  string
	said map[string]bool
}

func follow(t *testing.T, dir string, o Options) *followed {
	t.Helper()
	tree, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return &followed{tree, t, dir, map[string]bool{}}
}

// take believes events, each of which must be possible.
func (f *followed) take(events []Event) {
	f.t.Helper()
	for _, e := range events {
		switch {
		case e.Kind == Born && f.said[e.Path]:
			f.t.Fatalf("%s is born twice", e.Path)
		case e.Kind == Born:
			f.said[e.Path] = true
		case e.Kind == Ended && !f.said[e.Path]:
			f.t.Fatalf("%s ends, and was not there", e.Path)
		case e.Kind == Ended:
			delete(f.said, e.Path)
		}
	}
}

// real is what is there.
func (f *followed) real() (all []string) {
	f.t.Helper()
	err := filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != f.dir {
			rel, _ := filepath.Rel(f.dir, path)
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func (f *followed) believed() (all []string) {
	for path := range f.said {
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

// quiet takes events until there are none.
func (f *followed) quiet() {
	f.t.Helper()
	for {
		ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Millisecond)
		events, err := f.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			waiting, err := unix.Poll([]unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}}, 0)
			if err == nil && waiting == 0 && !f.lost {
				return
			}
			continue
		}
		if err != nil {
			f.t.Fatal(err)
		}
		f.take(events)
	}
}

// agrees fails if what is known, what was said and what is there differ.
func (f *followed) agrees() {
	f.t.Helper()
	f.quiet()
	want := f.real()
	if got := f.Groups(); !slices.Equal(got, want) {
		f.t.Errorf("known: %s", differ(got, want))
	}
	if got := f.believed(); !slices.Equal(got, want) {
		f.t.Errorf("said: %s", differ(got, want))
	}
	if s := f.Stats(); s.Groups != len(want) || s.Unwatched != 0 || len(f.watched) != len(want)+1 {
		f.t.Errorf("%d groups: %+v, %d watches", len(want), s, len(f.watched))
	}
}

func differ(got, want []string) string {
	var b strings.Builder
	for _, p := range got {
		if !slices.Contains(want, p) {
			fmt.Fprintf(&b, " +%s", p)
		}
	}
	for _, p := range want {
		if !slices.Contains(got, p) {
			fmt.Fprintf(&b, " -%s", p)
		}
	}
	return b.String()
}

// inMemory is a directory that goes with the test. It is in memory where it can be: on a disk each of
// thousands of directories takes milliseconds.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "weir-tree-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
