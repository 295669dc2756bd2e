// Package refusal explains why the kernel refused a BPF program. It is not in package bpf, because
// it needs the library that loads them, which is too heavy for weir.
package refusal

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/bpf"
)

// Of explains why the kernel refused what op takes. kernel is the first version that has
// it: "5.10".
func Of(op, kernel string, err error) *bpf.Unavailable {
	e := &bpf.Unavailable{Op: op, Reason: err.Error(), Err: err}
	var rejected *ebpf.VerifierError
	switch {
	case errors.As(err, &rejected): // with EACCES, which is not about rights then
		e.Reason = "the kernel did not accept a BPF program: " + err.Error()
	case forbidden(err):
		e.Reason = "the kernel does not let this process load BPF programs"
		e.Remedy = "run weir as root and outside of containers (it needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN)"
	case Lacking(err):
		e.Remedy = bpf.Needs(kernel)
	}
	return e
}

// Lacking reports whether the kernel refused because it does not have what was asked for.
func Lacking(err error) bool {
	return !forbidden(err) && (errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, btf.ErrNotFound) || errors.Is(err, unix.ENOSYS))
}

func forbidden(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) }
