package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/loopdev"
)

// Set changes a volume's limit: the named rates, and the targets that have it too. strict is
// false if the kernel cannot hold back the writers to it.
func (s Store) Set(ctx context.Context, name string, l limit.Limit, targets []string) (_ Volume, strict bool, err error) {
	v, unlock, err := s.take(ctx, name)
	if err != nil {
		return v, false, err
	}
	defer unlock()
	was := v.Limit
	at, err := s.changed(&v, l, targets)
	if err != nil {
		return v, false, err
	}
	strict = true
	if at.Up {
		strict, err = s.bind(ctx, at.Device, v.Limit)
	}
	if err == nil {
		err = s.save(v, ready)
	}
	if err != nil && at.Up {
		_, back := s.bind(context.Background(), at.Device, was)
		err = errors.Join(err, back)
	}
	return v, strict, err
}

// changed gives a volume on record the rates that a limit names, and more targets.
func (s Store) changed(v *Volume, l limit.Limit, targets []string) (Where, error) {
	v.Limit = v.Limit.Overlay(l).Bound()
	if err := s.mayLimit(v.Limit); err != nil {
		return Where{}, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	for _, t := range targets {
		if !slices.Contains(v.For, t) {
			v.For = append(v.For, t)
		}
	}
	return s.Where(*v)
}

// Resize makes a volume larger while it is mounted. It can be asked for again after it was
// interrupted.
func (s Store) Resize(ctx context.Context, name string, size uint64) (Volume, error) {
	v, unlock, err := s.take(ctx, name)
	if err != nil {
		return v, err
	}
	defer unlock()
	at, f, image, err := s.mayGrow(v, size)
	if err != nil {
		return v, err
	}
	defer image.Close()
	if err := fill(image, filepath.Dir(v.Image), size); err != nil {
		return v, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	if err := s.machine().grow(at.Loop); err != nil {
		return v, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	if err := runTool(ctx, f.pack, f.grow(loopdev.Node(at.Loop), v.Mount), nil); err != nil {
		return v, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	return v, nil
}

// mayGrow opens the file of a volume that is up and may become so large.
func (s Store) mayGrow(v Volume, size uint64) (at Where, f format, image *os.File, err error) {
	if v.Adopted() {
		return at, f, nil, fmt.Errorf("volume %s: weir did not make its device %s; resize it with the tool that did (such as lvextend -r)", v.Name, v.Mount)
	}
	if at, err = s.Where(v); err != nil {
		return at, f, nil, err
	}
	if !at.Up {
		return at, f, nil, fault.With(fmt.Errorf("volume %s is down", v.Name), fault.Remedy{Do: fault.VolumeUp, Target: v.Name})
	}
	f, known := formatOf(v.FS)
	if !known {
		return at, f, nil, fmt.Errorf("volume %s: weir cannot resize %s", v.Name, v.FS)
	}
	if image, err = openImage(v); err != nil {
		return at, f, nil, err
	}
	st, err := image.Stat()
	if err == nil && size < uint64(st.Size()) {
		err = fmt.Errorf("it has %s, and a mounted file system cannot shrink; create a smaller volume and move the files", sizeText(uint64(st.Size())))
	}
	if err == nil {
		err = mayResize(v)
	}
	if err != nil {
		return at, f, nil, errors.Join(fmt.Errorf("resize volume %s: %w", v.Name, err), image.Close())
	}
	return at, f, image, nil
}

// mayResize refuses ext4 without CAP_SYS_RESOURCE (ext4_resize_begin asks for it).
func mayResize(v Volume) error {
	if v.FS != "ext4" {
		return nil
	}
	var data [2]unix.CapUserData // version 3 has two
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		return fmt.Errorf("read this process's rights: %w", err)
	}
	if data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) == 0 {
		return &fault.Unsupported{Feature: "resize ext4", Reason: "the kernel lets it grow only with CAP_SYS_RESOURCE, which root does not have here"}
	}
	return nil
}
