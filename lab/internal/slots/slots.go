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

// Slots is a folder with one file a slot, and one for a guest that takes only the time
// that the others leave.
type Slots struct {
	dir    string
	number int // that there are
	use    int // that Take takes one of
}

// Open makes the folder if need be. All who share it must agree on the number of slots;
// who uses fewer of them leaves the last ones to others.
func Open(dir string, number, use int) (Slots, error) {
	if use < 1 || number < use {
		return Slots{}, fmt.Errorf("open slots: %d of %d of them", use, number)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Slots{}, fmt.Errorf("open slots: %w", err)
	}
	return Slots{dir: dir, number: number, use: use}, nil
}

// Take waits for a free slot, and tells which it is.
func (s Slots) Take(ctx context.Context) (slot int, release func(), err error) {
	// The last comes first: who wants all begins with the first.
	names := make([]string, s.use)
	for i := range names {
		names[i] = strconv.Itoa(s.use - 1 - i)
	}
	i, f, err := s.wait(ctx, names...)
	if err != nil {
		return 0, nil, fmt.Errorf("take slot: %w", err)
	}
	return s.use - 1 - i, func() { _ = f.Close() }, nil
}

// spare is the slot of a guest that takes only the time that the others leave.
const spare = "spare"

// TakeSpare waits for the slot of one that leaves the others alone.
func (s Slots) TakeSpare(ctx context.Context) (release func(), err error) {
	_, f, err := s.wait(ctx, spare)
	if err != nil {
		return nil, fmt.Errorf("take the spare slot: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// TakeAll waits until the machine is free. It takes all slots, in order, so that two who
// want all of them cannot lock each other out; while it waits for the later ones, nobody
// new gets the earlier.
func (s Slots) TakeAll(ctx context.Context) (release func(), err error) {
	var taken []*os.File
	release = func() {
		for _, f := range taken {
			_ = f.Close()
		}
	}
	for i := range s.number + 1 {
		name := spare
		if i < s.number {
			name = strconv.Itoa(i)
		}
		_, f, err := s.wait(ctx, name)
		if err != nil {
			release()
			return nil, fmt.Errorf("take all slots: %w", err)
		}
		taken = append(taken, f)
	}
	return release, nil
}

// wait tries slots in turn until one is free, and tells which.
func (s Slots) wait(ctx context.Context, names ...string) (int, *os.File, error) {
	for {
		for i, name := range names {
			f, err := s.try(name)
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

func (s Slots) try(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_CREATE|os.O_RDWR, 0o644)
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
	return nil, fmt.Errorf("lock slot %s: %w", name, err)
}
