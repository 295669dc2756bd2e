package vm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A domain's file is news if it says something else of disks, whatever else it says; one that cannot be read is when it is
// replaced.
func TestStored(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "run/libvirt/lxc")
	if got := Store(root, Stored{}); got.IsNews(Stored{}) {
		t.Error("libvirt has not run anything here")
	}
	put := func(name, text string) func() error {
		return func() error {
			file := filepath.Join(folder, name)
			return errors.Join(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file))
		}
	}
	unreadable := func(at int64) func() error {
		return func() error {
			file := filepath.Join(folder, "a.xml")
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o700), os.Chtimes(file, time.Time{}, time.Unix(at, 0)))
		}
	}
	was := Store(root, Stored{})
	for i, step := range []struct {
		do   func() error
		news bool
	}{
		{func() error { return os.MkdirAll(folder, 0o700) }, false},
		{put("a.xml", "<memory>1</memory>\n <source file='/a'/>\n"), true},
		{put("a.xml", "<memory>2</memory>\n  <source file='/a'/>\n"), false},
		{put("a.xml", "<memory>2</memory>\n<source file='/a'/>\n<source dev='/dev/vdb'/>\n"), true},
		{put("a.xml", "<memory>2</memory>\n<source dev='/dev/vdb'/>\n"), true},
		{func() error { return nil }, false},
		{put("a.pid", "7"), false},
		{put("b.xml", ""), true},
		{unreadable(1), true},
		{unreadable(2), true},
		{func() error { return os.Remove(filepath.Join(folder, "b.xml")) }, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(folder, time.Time{}, time.Unix(int64(i), 0)); err != nil { // two steps can be in one tick of the clock
			t.Fatal(err)
		}
		now := Store(root, was)
		if got := now.IsNews(was); got != step.news {
			t.Errorf("step %d: %t, want %t", i, got, step.news)
		}
		was = now
	}
}
