package bpf

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A process can load programs for another one, which then owns them: the descriptors of their maps
// and hooks go through a socket. Package handover makes maps and hooks of them.

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
