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
	"github.com/weir-io/weir/internal/loopdev"
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
	v.Limit = v.Limit.Overlay(l).Bound()
	if err := s.mayLimit(v.Limit); err != nil {
		return v, false, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	for _, t := range targets {
		if !slices.Contains(v.For, t) {
			v.For = append(v.For, t)
		}
	}
	at, err := s.Where(v)
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

// Resize makes a volume larger while it is mounted. It can be asked for again after it was
// interrupted.
func (s Store) Resize(ctx context.Context, name string, size uint64) (Volume, error) {
	v, unlock, err := s.take(ctx, name)
	if err != nil {
		return v, err
	}
	defer unlock()
	if v.Adopted() {
		return v, fmt.Errorf("volume %s: weir did not make its device %s; resize it with the tool that did (such as lvextend -r)", v.Name, v.Mount)
	}
	at, err := s.Where(v)
	if err != nil {
		return v, err
	}
	if !at.Up {
		return v, fault.With(fmt.Errorf("volume %s is down", v.Name), fault.Remedy{Do: fault.VolumeUp, Target: v.Name})
	}
	f, known := formatOf(v.FS)
	if !known {
		return v, fmt.Errorf("volume %s: weir cannot resize %s", v.Name, v.FS)
	}
	image, err := openImage(v)
	if err != nil {
		return v, err
	}
	defer image.Close()
	st, err := image.Stat()
	if err != nil {
		return v, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	if size < uint64(st.Size()) {
		return v, fmt.Errorf("resize volume %s: it has %s, and a mounted file system cannot shrink; create a smaller volume and move the files", v.Name, sizeText(uint64(st.Size())))
	}
	if may, err := mayResize(); err != nil {
		return v, err
	} else if v.FS == "ext4" && !may {
		return v, &fault.Unsupported{Feature: "resize volume " + v.Name, Reason: "the kernel lets ext4 grow only with CAP_SYS_RESOURCE, which root does not have here"}
	}
	if err := fill(image, filepath.Dir(v.Image), size); err != nil {
		return v, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	loop, err := os.OpenFile(loopdev.Node(at.Loop), os.O_RDWR, 0)
	if err != nil {
		return v, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	defer loop.Close()
	if err := loopdev.Resized(loop); err != nil {
		return v, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	if err := runTool(ctx, f.pack, f.grow(loop.Name(), v.Mount), nil); err != nil {
		return v, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	return v, nil
}

// mayResize reports whether the process has CAP_SYS_RESOURCE (ext4_resize_begin asks for it).
func mayResize() (bool, error) {
	var data [2]unix.CapUserData // version 3 has two
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		return false, fmt.Errorf("read this process's rights: %w", err)
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0, nil
}
