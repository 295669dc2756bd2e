package slots

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestTake(t *testing.T) {
	s, err := Open(t.TempDir(), 2)
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
