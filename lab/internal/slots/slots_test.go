package slots

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestTake(t *testing.T) {
	s, err := Open(t.TempDir(), 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, one, err1 := s.Take(soon())
	_, two, err2 := s.Take(soon())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Take(soon()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("third of two slots: %v", err)
	}
	one()
	if _, err := s.TakeAll(soon()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("all slots while one is taken: %v", err)
	}
	two()
	spare, err := s.TakeSpare(soon())
	if err != nil {
		t.Fatalf("the spare slot: %v", err)
	}
	if _, err := s.TakeAll(soon()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("all slots while the spare one is taken: %v", err)
	}
	spare()
	all, err := s.TakeAll(soon())
	if err != nil {
		t.Fatalf("all of the free slots: %v", err)
	}
	if _, _, err := s.Take(soon()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a slot while all are taken: %v", err)
	}
	all()
}

// Who uses one slot of two must still wait for both before it has the machine alone.
func TestTakeAllOfUnused(t *testing.T) {
	dir := t.TempDir()
	all, err1 := Open(dir, 2, 2)
	one, err2 := Open(dir, 2, 1)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	slot, release, err := all.Take(t.Context())
	if err != nil || slot != 1 {
		t.Fatalf("slot %d, %v", slot, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := one.TakeAll(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("all slots while one is taken that is not used here: %v", err)
	}
	release()
	if slot, _, err := one.Take(t.Context()); err != nil || slot != 0 {
		t.Errorf("the only slot: %d, %v", slot, err)
	}
}
