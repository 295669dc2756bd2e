package inode

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Unavailable says why owners cannot be read here. It means "cannot tell", never
// "nobody owns it".
type Unavailable struct {
	Reason string // what was found on this host
	Remedy string // what would make it possible; may be empty
	Err    error  // what the kernel answered, if it was asked
}

func (e *Unavailable) Error() string {
	s := "read the owners of inodes: " + e.Reason
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *Unavailable) Unwrap() error { return e.Err }

const (
	types    = "/sys/kernel/btf/vmlinux"
	lockdown = "/sys/kernel/security/lockdown"

	needsIterators = "Linux 5.8 or later is needed, with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF"
)

// hindrance looks below a root for what makes it useless to ask the kernel.
func hindrance(root string) error {
	if _, err := os.Stat(filepath.Join(root, types)); err != nil {
		return &Unavailable{Reason: "the kernel does not describe its types (" + types + " is not there)", Remedy: needsIterators}
	}
	// A host without that file is not locked down, or does not say so and refuses later.
	if mode, err := os.ReadFile(filepath.Join(root, lockdown)); err == nil && strings.Contains(string(mode), "[confidentiality]") {
		return &Unavailable{Reason: "the kernel is locked down, and its memory must not be read (" + lockdown + ": confidentiality)",
			Remedy: "lockdown=integrity at boot allows it"}
	}
	return nil
}

// unavailable explains why the program was not loaded.
func unavailable(err error) error {
	e := &Unavailable{Err: err}
	var rejected *ebpf.VerifierError
	switch {
	case errors.As(err, &rejected):
		e.Reason = "the kernel did not accept the program: " + err.Error()
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		e.Reason = "the kernel does not let this process load a BPF program"
		e.Remedy = "run weir as root, outside of containers (it takes CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN)"
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound), errors.Is(err, unix.ENOSYS):
		e.Reason = "the kernel has no BPF iterator over open files (" + err.Error() + ")"
		e.Remedy = needsIterators
	default:
		e.Reason = err.Error()
	}
	return e
}
