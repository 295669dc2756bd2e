// Package slots lets only so many guests run on this machine at once, whoever
// starts them: two runs of the lab at the same time would otherwise measure each
// other. A slot is a locked file, so a run that is killed holds none.
package slots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Slots is a folder with one file a slot.
type Slots struct {
	dir    string
	number int
}

// Open makes the folder if need be. All who share it should agree on the number.
func Open(dir string, number int) (Slots, error) {
	if number < 1 {
		return Slots{}, fmt.Errorf("open slots: %d of them", number)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Slots{}, fmt.Errorf("open slots: %w", err)
	}
	return Slots{dir: dir, number: number}, nil
}

// Take waits for a free slot, and tells which it is. One that wants the machine for itself takes all,
// in order, so that two who want all of them cannot lock each other out; while
// it waits for the later ones, nobody new gets the earlier.
func (s Slots) Take(ctx context.Context, all bool) (slot int, release func(), err error) {
	if !all {
		slot, f, err := s.any(ctx)
		if err != nil {
			return 0, nil, fmt.Errorf("take slot: %w", err)
		}
		return slot, func() { _ = f.Close() }, nil
	}
	var taken []*os.File
	release = func() {
		for _, f := range taken {
			_ = f.Close()
		}
	}
	for i := range s.number {
		_, f, err := s.wait(ctx, i, i)
		if err != nil {
			release()
			return 0, nil, fmt.Errorf("take all slots: %w", err)
		}
		taken = append(taken, f)
	}
	return 0, release, nil
}

// any tries the last slot first: who wants all begins with the first.
func (s Slots) any(ctx context.Context) (int, *os.File, error) {
	return s.wait(ctx, s.number-1, 0)
}

// wait tries the slots from high down to low until one is free.
func (s Slots) wait(ctx context.Context, high, low int) (int, *os.File, error) {
	for {
		for i := high; i >= low; i-- {
			f, err := s.try(i)
			if f != nil || err != nil {
				return i, f, err
			}
		}
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s Slots) try(i int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, strconv.Itoa(i)), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock slot %d: %w", i, err)
}
