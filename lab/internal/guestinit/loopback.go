package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// raiseLoopback gives the guest 127.0.0.1: the kernel gives it to lo when that is brought up
// (inetdev_event in net/ipv4/devinet.c). A kernel without IPv4 has none.
func raiseLoopback() (err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring up lo: %w", err)
	}
	return nil
}
