// Package handover makes descriptors of what one process has loaded of BPF, and maps and hooks of
// them in another one, which then owns them. Package bpf sends the descriptors.
package handover

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A Descriptor keeps something of BPF in the kernel: a map, or a program that is hooked up.
type Descriptor int

// Close lets it go.
func (d Descriptor) Close() error { return os.NewSyscallError("close", unix.Close(int(d))) }

// Descriptors are those of maps, and then of hooks. They belong to the maps and hooks.
func Descriptors(maps []*ebpf.Map, hooks []io.Closer) (fds []int, err error) {
	for _, m := range maps {
		fds = append(fds, m.FD())
	}
	for _, h := range hooks {
		of, has := h.(interface{ FD() int })
		if !has {
			return nil, fmt.Errorf("hand a BPF program over: %T has no descriptor", h)
		}
		fds = append(fds, of.FD())
	}
	return fds, nil
}

// Maps makes maps of the first descriptors, and hooks of the others. All belong to what it
// returns, and are closed if it fails.
func Maps(fds []int, maps ...**ebpf.Map) (hooks []io.Closer, err error) {
	if len(fds) < len(maps) {
		err = fmt.Errorf("take a BPF program over: %d descriptors, want at least %d", len(fds), len(maps))
	}
	for i, fd := range fds {
		if err != nil || i >= len(maps) {
			hooks = append(hooks, Descriptor(fd))
			continue
		}
		*maps[i], err = ebpf.NewMapFromFD(fd) // which closes it if it fails
	}
	if err == nil {
		return hooks, nil
	}
	errs := []error{err}
	for _, m := range maps {
		errs = append(errs, (*m).Close())
	}
	for _, h := range hooks {
		errs = append(errs, h.Close())
	}
	return nil, errors.Join(errs...)
}
