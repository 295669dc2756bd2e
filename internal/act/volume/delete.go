package volume

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// Delete removes a volume with all its files; for an adopted one, only weir's settings. It
// refuses a mounted volume, and one whose file is not the file that it was created with.
func (s Store) Delete(ctx context.Context, name string) (Volume, error) {
	v, unlock, err := s.take(ctx, name)
	if err != nil {
		return v, err
	}
	defer unlock()
	if v.Adopted() {
		if err := s.release(ctx, v); err != nil {
			return v, err
		}
		return v, s.forget(v, ready)
	}
	if err := s.mayDelete(v); err != nil {
		return v, err
	}
	if err := s.turn(v, ready, deleting); err != nil {
		return v, err
	}
	return v, s.finishDelete(v)
}

func (s Store) mayDelete(v Volume) error {
	at, err := s.Where(v)
	if err != nil {
		return err
	}
	if at.Up {
		return fault.With(fmt.Errorf("volume %s is mounted at %s", v.Name, v.Mount), fault.Remedy{Do: fault.VolumeDown, Target: v.Name})
	}
	there, its, err := look(v)
	switch {
	case errors.Is(err, errElsewhere):
		return fault.With(fmt.Errorf("volume %s: %w", v.Name, err), fault.Remedy{Do: fault.VolumeMount, Target: v.Name})
	case err != nil:
		return fmt.Errorf("volume %s: %w", v.Name, err)
	case !there:
		return fault.With(fmt.Errorf("volume %s: its file %s is gone", v.Name, v.Image), fault.Remedy{Do: fault.VolumeForget, Target: v.Name})
	case !its:
		return fault.With(fmt.Errorf("volume %s: %s is not the file that it was created with", v.Name, v.Image), fault.Remedy{Do: fault.VolumeRemove, Target: v.Name})
	}
	image, err := openPlain(v.Image, unix.O_RDONLY)
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	defer image.Close()
	return s.notAttached(v, image)
}

// finishDelete removes what is left of a volume that is being deleted.
func (s Store) finishDelete(v Volume) error {
	if err := s.remove(v); err != nil {
		return fmt.Errorf("delete volume %s: %w", v.Name, err)
	}
	return s.forget(v, deleting)
}

// Forget removes the record of a volume that is down, and touches no file.
func (s Store) Forget(ctx context.Context, name string) (Volume, error) {
	v, unlock, err := s.take(ctx, name)
	if err != nil {
		return v, err
	}
	defer unlock()
	if err := s.mayForget(v); err != nil {
		return v, err
	}
	if err := s.removeLeft(v); err != nil {
		return v, err
	}
	return v, s.forget(v, ready)
}

func (s Store) mayForget(v Volume) error {
	if at, err := s.Where(v); err == nil && at.Up && !v.Adopted() {
		return fault.With(fmt.Errorf("volume %s is mounted at %s", v.Name, v.Mount), fault.Remedy{Do: fault.VolumeDown, Target: v.Name})
	}
	return nil
}
