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

// Take waits for a free slot, and tells which it is.
func (s Slots) Take(ctx context.Context) (slot int, release func(), err error) {
	for {
		for i := range s.number {
			f, err := s.try(i)
			if err != nil {
				return 0, nil, fmt.Errorf("take slot: %w", err)
			}
			if f != nil {
				return i, func() { _ = f.Close() }, nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, nil, fmt.Errorf("take slot: %w", ctx.Err())
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
