package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/loopdev"
	"github.com/weir-io/weir/internal/state"
)

// firstLoop is the least number of a volume's loop device: those that others ask for are
// counted from 0.
const firstLoop = 256

// Where is what a volume is on while it is up.
type Where struct {
	Up     bool // mounted at its place
	Device blkdev.Number
	Mount  blkdev.Mount
	Loop   int // which loop device that is, unless the volume is adopted
}

// Where finds out whether a volume is up, and on which device.
func (s Store) Where(v Volume) (Where, error) {
	m, mounted, err := s.Devices.MountedOn(v.Mount)
	if err != nil {
		return Where{}, err
	}
	if v.Adopted() {
		if !mounted {
			return Where{}, nil
		}
		chain, err := s.Devices.OfMount(context.Background(), m)
		if err != nil || len(chain.Devices) != 1 {
			return Where{}, errors.Join(err, fmt.Errorf("volume %s: the file system mounted at %s now has no device of its own", v.Name, v.Mount))
		}
		return Where{Up: true, Device: chain.Devices[0].Number, Mount: m}, nil
	}
	if mounted {
		if n, is := s.machine().loopOf(m.Number); is {
			if its, err := s.isLoopOf(n, v); its || err != nil {
				return Where{its, m.Number, m, n}, err
			}
		}
	}
	at, err := s.elsewhere(v)
	if err == nil && !at.Up && mounted {
		err = fmt.Errorf("volume %s: %s is mounted at %s; unmount that first", v.Name, m.Source, v.Mount)
	}
	return at, err
}

// isLoopOf reports whether a loop device is of a volume's file, also if that, or a directory
// on the way to it, has another name by now.
func (s Store) isLoopOf(n int, v Volume) (bool, error) {
	file, err := s.machine().file(n)
	if err != nil || file == "" || file == v.Image {
		return file != "" && err == nil, err
	}
	if n != v.Loop {
		return false, nil
	}
	inode, err := s.machine().inode(n)
	return inode == v.File.Inode, err
}

// elsewhere finds a volume whose mount is not where it was made, because a directory on the way
// was renamed. Its device identifies it.
func (s Store) elsewhere(v Volume) (Where, error) {
	if v.Loop < firstLoop || !s.machine().exists(v.Loop) {
		return Where{}, nil
	}
	if its, err := s.isLoopOf(v.Loop, v); err != nil || !its {
		return Where{}, err
	}
	dev, err := s.machine().number(v.Loop)
	if err != nil {
		return Where{}, err
	}
	mounts, err := s.Devices.MountsOf(0, blkdev.Mount{Number: dev})
	if err != nil || len(mounts) == 0 {
		return Where{}, err
	}
	m := mounts[0]
	for _, other := range mounts {
		if other.ID == v.MountID {
			m = other
		}
	}
	return Where{true, dev, m, v.Loop}, nil
}

// Up attaches, bounds and mounts a volume. If it is up already, Up sets its limit again. strict
// is false if the kernel cannot hold back the writers to it. With accept, the present file is
// accepted as the volume's own.
func (s Store) Up(ctx context.Context, name string, accept bool) (_ Volume, strict bool, err error) {
	v, unlock, err := s.take(ctx, name)
	if err != nil {
		return v, false, err
	}
	defer unlock()
	if err := s.mayLimit(v.Limit); err != nil {
		return v, false, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	at, err := s.Where(v)
	if err != nil {
		return v, false, err
	}
	if at.Up {
		if was := v; at.Loop != was.Loop || v.Adopted() && at.Device != was.Device {
			v.Loop, v.Device = at.Loop, at.Device
			if v.Adopted() {
				if err := s.checkOwn(ctx, v.Name, v.Mount); err != nil {
					return v, false, err
				}
				before, err := s.boundsOf(at.Device)
				if err != nil {
					return v, false, err
				}
				v.Before = &before
			}
			if err := s.save(v, ready); err != nil {
				return v, false, err
			}
		}
		strict, err = s.bind(ctx, at.Device, v.Limit)
		return v, strict, err
	}
	if v.Adopted() {
		return v, false, nothingMounted(v)
	}
	if accept {
		if err := acceptFile(&v); err != nil {
			return v, false, err
		}
	}
	strict, err = s.up(ctx, &v)
	return v, strict, err
}

func (s Store) up(ctx context.Context, v *Volume) (strict bool, err error) {
	image, err := openImage(*v)
	if err != nil {
		return false, err
	}
	defer image.Close()
	if err := s.notAttached(*v, image); err != nil {
		return false, err
	}
	if err := s.emptyPlace(*v); err != nil {
		return false, err
	}
	st, err := image.Stat()
	if err != nil {
		return false, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	if err := fill(image, filepath.Dir(v.Image), uint64(st.Size())); err != nil { // of what was freed in it meanwhile
		return false, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	return s.attach(ctx, v, image, ready)
}

// emptyPlace makes the mount point anew if weir made it, and refuses one that has been written
// to while the volume was down.
func (s Store) emptyPlace(v Volume) error {
	empty, err := isEmpty(v.Mount)
	if errors.Is(err, fs.ErrNotExist) && v.MadeMount {
		empty, err = true, makeDir(v.Mount)
	}
	if err == nil && !empty {
		err = fmt.Errorf("%s has files in it, which were written while the volume was not mounted; move them away", v.Mount)
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	return nil
}

// attach makes a device of the image, bounds it, and only then mounts it. The device is on
// record until that is done; the volume's record, which has the suffix, has it then.
func (s Store) attach(ctx context.Context, v *Volume, image *os.File, suffix string) (strict bool, err error) {
	if err := s.removeLeft(*v); err != nil {
		return false, err
	}
	record, err := s.newLoop(v)
	if err != nil {
		return false, err
	}
	give := func(err error) error { // up what was attached
		if gone := s.machine().remove(v.Loop); gone != nil {
			return errors.Join(err, gone, record.Leave())
		}
		return errors.Join(err, record.Done())
	}
	if err := s.save(*v, suffix); err != nil {
		return false, give(err)
	}
	loop, err := s.machine().attach(v.Loop, image)
	if err != nil {
		return false, give(err)
	}
	if strict, err = s.mount(ctx, *v); err == nil {
		err = s.recordMount(v, suffix)
	}
	// The mount keeps the device; without one it is free when the descriptor is closed.
	if err := errors.Join(err, loop.Close()); err != nil {
		return false, give(err)
	}
	return strict, record.Done()
}

// mount bounds a device and mounts it.
func (s Store) mount(ctx context.Context, v Volume) (strict bool, err error) {
	dev, err := s.machine().number(v.Loop)
	if err != nil {
		return false, err
	}
	if err := s.machine().keepSpace(v.Loop); err != nil {
		return false, err
	}
	if strict, err = s.bindNew(dev, v.Limit); err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return strict, s.machine().mount(v.Loop, v)
}

// recordMount puts the number of a volume's mount on record.
func (s Store) recordMount(v *Volume, suffix string) error {
	at, err := s.elsewhere(*v)
	if err != nil {
		return err
	}
	v.MountID = at.Mount.ID
	return s.save(*v, suffix)
}

// newLoop makes a loop device that nobody has used before, and puts it on record.
func (s Store) newLoop(v *Volume) (*state.Record, error) {
	for n := firstLoop; ; n++ {
		if s.machine().exists(n) {
			continue
		}
		record, err := s.State.New(loopKind, n)
		if err != nil {
			return nil, err
		}
		err = s.machine().add(n)
		if err == nil {
			v.Loop = n
			return record, nil
		}
		if done := record.Done(); done != nil || !errors.Is(err, unix.EEXIST) {
			return nil, errors.Join(err, done)
		}
	}
}

// loopKind names the records of loop devices that are being attached or released.
const loopKind = "loop"

// notAttached refuses a file that is attached to a device already: two devices at once would
// corrupt it.
func (s Store) notAttached(v Volume, image *os.File) error {
	n, used, err := s.machine().ofFile(image)
	if err == nil && used {
		err = fmt.Errorf("its file is attached to %s already, which is not mounted at %s; detach it first (losetup -d %s)", loopdev.Node(n), v.Mount, loopdev.Node(n))
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	return nil
}
