package state

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A record is awaited without a look for it: it ends the wait when it is made, and no other record does.
func TestAwait(t *testing.T) {
	d := Dir{t.TempDir() + "/weir"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- d.Await(ctx, "pace") }()
	other := newRecord(t, d, "birth")
	for range 100 {
		if err := newRecord(t, d, "set").Done(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("it ends with another record: %v", err)
	case <-time.After(20 * time.Millisecond): // it may, and must not
	}
	one := newRecord(t, d, "pace")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := d.Await(ctx, "pace"); err != nil { // one that is there
		t.Error(err)
	}
	if err := errors.Join(one.Done(), other.Done()); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- d.Await(ctx, "pace") }()
	go func() {
		time.Sleep(time.Millisecond)
		cancel()
	}()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Where the directory goes, nobody tells of records any more.
func TestAwaitWithoutADirectory(t *testing.T) {
	d := Dir{t.TempDir() + "/weir"}
	if err := d.make(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Await(t.Context(), "pace") }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if !errors.Is(err, errMoved) {
				t.Error(err)
			}
			return
		case <-tick.C: // until it waits
			if err := os.Remove(d.path); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
				t.Fatal(err)
			}
		}
	}
}

func newRecord(t *testing.T, d Dir, kind string) *Record {
	t.Helper()
	r, err := d.New(kind, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
