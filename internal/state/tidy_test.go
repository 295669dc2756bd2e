package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func gone(t *testing.T, d Dir) bool {
	t.Helper()
	_, err := os.Lstat(d.path)
	return errors.Is(err, fs.ErrNotExist)
}

func TestTidyLeavesNothing(t *testing.T) {
	d := at(t)
	if err := d.tidy(); err != nil || !gone(t, d) {
		t.Fatalf("a directory that is not there: %v", err)
	}
	lock, err := d.Try("x")
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	if err := d.tidy(); err != nil || gone(t, d) {
		t.Fatalf("with a lock held: %v, gone: %t", err, gone(t, d))
	}
	lock.Unlock()
	r, err := d.New("run", "mine")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.tidy(); err != nil || gone(t, d) {
		t.Fatalf("with a record: %v, gone: %t", err, gone(t, d))
	}
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	if err := d.tidy(); err != nil || !gone(t, d) {
		t.Fatalf("with neither: %v, gone: %t", err, gone(t, d))
	}
}

// A lock excludes all others, whoever removes the file of locks meanwhile.
func TestTidyKeepsLocksApart(t *testing.T) {
	d := at(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	inside := 0
	for range 8 {
		all.Go(func() {
			for range 200 {
				l, err := d.Wait(t.Context(), "x", "x", time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				if inside > 1 {
					t.Error("two have the lock")
				}
				mu.Unlock()
				mu.Lock()
				inside--
				mu.Unlock()
				l.Unlock()
				if err := d.tidy(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if !gone(t, d) {
		t.Error("the directory is left")
	}
}

// Another user's runtime directory, as su(1) leaves it in the environment, is not this one's.
func TestRuntimeDir(t *testing.T) {
	own := t.TempDir()
	for env, want := range map[string]bool{own: true, "": false, "relative": false, filepath.Join(own, "missing"): false} {
		t.Setenv("XDG_RUNTIME_DIR", env)
		if path, is := runtimeDir("/"); is != want || is && path != own {
			t.Errorf("XDG_RUNTIME_DIR=%q: %q, %t; want %t", env, path, is, want)
		}
	}
	if os.Getuid() == 0 {
		if err := os.Chown(own, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		t.Setenv("XDG_RUNTIME_DIR", own)
		if path, is := runtimeDir("/"); is {
			t.Errorf("%q is another user's", path)
		}
	}
}
