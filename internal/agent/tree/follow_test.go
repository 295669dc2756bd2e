package tree

import (
	"context"
	"encoding/binary"
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

	"github.com/weir-io/weir/lab"
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
	tree.counts = linksCount(dir) // as those of cgroups do
	return &followed{tree, t, dir, map[string]bool{}}
}

// linksCount reports whether a directory's file system is known to count directories in the links of the one above.
func linksCount(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.XFS_SUPER_MAGIC}, st.Type)
}

// A group without others below it is not listed: of thousands most are so.
func TestAGroupWithoutOthersIsNotListed(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	if !linksCount(dir) {
		t.Skip("needs a file system that counts directories in links, as kernfs does")
	}
	must(t, os.MkdirAll(dir+"/a/b", 0o700), os.Mkdir(dir+"/c", 0o700))
	f := follow(t, dir, Options{})
	listed, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	defer unix.Close(listed)
	of := map[int32]string{}
	for _, name := range []string{"a", "a/b", "c"} {
		wd, err := unix.InotifyAddWatch(listed, filepath.Join(dir, name), unix.IN_ACCESS|unix.IN_ONLYDIR)
		must(t, err)
		of[int32(wd)] = name
	}
	_, err = f.Resync()
	must(t, err)
	var all []string
	buf := make([]byte, 4096)
	n, err := unix.Read(listed, buf)
	must(t, err)
	for buf = buf[:n]; len(buf) >= unix.SizeofInotifyEvent; buf = buf[unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(buf[12:])):] {
		all = append(all, of[int32(binary.NativeEndian.Uint32(buf))])
	}
	if slices.Sort(all); !slices.Equal(slices.Compact(all), []string{"a"}) {
		t.Errorf("%v are listed", all)
	}
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
