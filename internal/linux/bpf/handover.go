package bpf

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A process can load programs for another one, which then owns them: the descriptors of their maps
// and hooks go through a socket.

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

// handedMost and saidMost are how many descriptors, and how much text, one message has at most.
const (
	handedMost = 64
	saidMost   = 4096
)

// Send sends descriptors through a socket of messages, or why there are none.
func Send(socket int, fds []int, why error) error {
	text, rights := []byte{0}, []byte(nil)
	if why != nil {
		text = []byte(why.Error())
		text = text[:min(len(text), saidMost)]
	} else if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return os.NewSyscallError("sendmsg", unix.Sendmsg(socket, text, rights, nil, 0))
}

// Receive receives what Send has sent, and does not wait for it. An error of the sender is why.
func Receive(socket int) (fds []int, why, err error) {
	text, rights := make([]byte, saidMost), make([]byte, unix.CmsgSpace(4*handedMost))
	n, some, _, _, err := unix.Recvmsg(socket, text, rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, nil, os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:some])
	if err != nil {
		return nil, nil, os.NewSyscallError("recvmsg", err)
	}
	for _, m := range messages {
		more, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, nil, os.NewSyscallError("recvmsg", err)
		}
		fds = append(fds, more...)
	}
	switch {
	case n == 0:
		return nil, nil, io.EOF
	case text[0] != 0:
		return nil, errors.New(string(text[:n])), nil
	}
	return fds, nil, nil
}
