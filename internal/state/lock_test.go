package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestALockIsOnes(t *testing.T) {
	d := at(t)
	var held atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				l, err := d.Wait(t.Context(), "x", "x", time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if n := held.Add(1); n != 1 {
					t.Errorf("%d hold it", n)
				}
				held.Add(-1)
				l.Unlock()
			}
		})
	}
	all.Wait()
	if some, err := d.Any(); err != nil || some {
		t.Errorf("a record is left: %v", err)
	}
}

func TestALockSaysWhoHasIt(t *testing.T) {
	d := at(t)
	l, err := d.Try("x")
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	if other, err := d.Try("y"); err != nil || other == nil {
		t.Error("another name is locked too:", err)
	}
	_, err = d.Wait(t.Context(), "x", "the limits of cgroup /x", 20*time.Millisecond)
	var busy *BusyError
	if !errors.As(err, &busy) || !strings.Contains(err.Error(), "lock the limits of cgroup /x: ") || !strings.Contains(err.Error(), filepath.Base(os.Args[0])) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Wait(ctx, "x", "x", time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.Unlock()
	if l, err := d.Try("x"); err != nil || l == nil {
		t.Errorf("it is locked still: %v", err)
	}
}

// Nobody else can open a lock: who could, could hold it for ever.
func TestALockIsNobodyElses(t *testing.T) {
	d := at(t)
	if _, err := d.Try("x"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.path, d.locks()} {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, st.Mode())
		}
	}
}
