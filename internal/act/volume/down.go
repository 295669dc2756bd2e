package volume

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/state"
)

// Down unmounts a volume and releases its device. The error is a *BusyError if the volume is in
// use.
func (s Store) Down(ctx context.Context, name string) (Volume, error) {
	v, unlock, err := s.take(ctx, name)
	if err != nil {
		return v, err
	}
	defer unlock()
	if v.Adopted() {
		return v, notWeirsMount(v)
	}
	return v, s.down(v)
}

func (s Store) down(v Volume) error {
	at, err := s.Where(v)
	if err != nil {
		return err
	}
	if !at.Up {
		return s.removeLeft(v)
	}
	if err := s.busy(v, at); err != nil {
		return err
	}
	record, err := s.State.New(loopKind, at.Loop)
	if err != nil {
		return err
	}
	if err := s.unmount(at.Mount); err != nil {
		return errors.Join(s.inUse(v, at, err), record.Done())
	}
	if err := s.machine().detach(at.Loop); err != nil { // one that somebody attached by hand does not end by itself
		return errors.Join(err, record.Leave())
	}
	if err := s.machine().remove(at.Loop); errors.Is(err, unix.EBUSY) {
		// It is mounted where weir has not seen it. Restore it.
		v.Mount = at.Mount.Point
		back := s.machine().mount(at.Loop, v)
		return errors.Join(&BusyError{Volume: v, By: "a mount that weir does not see"}, back, record.Done())
	} else if err != nil {
		return errors.Join(err, record.Leave())
	}
	return record.Done()
}

// removeLeft removes the device of a volume that was unmounted without weir.
func (s Store) removeLeft(v Volume) error {
	left, err := s.isLeft(v)
	if err != nil || !left {
		return err
	}
	return s.machine().remove(v.Loop)
}

// isLeft reports whether the last device of a volume is there without a file. One that has a file
// is another's by now.
func (s Store) isLeft(v Volume) (bool, error) {
	if v.Loop < firstLoop || !s.machine().exists(v.Loop) {
		return false, nil
	}
	file, err := s.machine().file(v.Loop)
	return err == nil && file == "", err
}

// sweepLoops removes the devices that dead weirs were attaching or releasing. A device that is
// in use and not mounted here is checked again later: its user usually closes it.
func (s Store) sweepLoops() error {
	return state.Sweep(s.State, loopKind, func(n int) error {
		if !s.machine().exists(n) {
			return nil
		}
		file, err := s.machine().file(n)
		if err != nil {
			return err
		}
		if file == "" {
			return s.machine().remove(n)
		}
		dev, err := s.machine().number(n)
		if err != nil {
			return err
		}
		mounts, err := s.Devices.MountsOf(0, blkdev.Mount{Number: dev})
		if err == nil && len(mounts) == 0 {
			return state.ErrKeep
		}
		return err
	})
}
