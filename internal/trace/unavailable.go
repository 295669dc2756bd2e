package trace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Unavailable says why nothing can be traced here.
type Unavailable struct {
	Reason string // what was found on this host
	Remedy string // what would make it possible; may be empty
	Err    error  // what the kernel answered, if it was asked
}

func (e *Unavailable) Error() string {
	s := "trace: " + e.Reason
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *Unavailable) Unwrap() error { return e.Err }

const (
	typesPath    = "/sys/kernel/btf/vmlinux"
	lockdownPath = "/sys/kernel/security/lockdown"

	needsKernel = "Linux 5.10 or later is needed, with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF"
)

// hindrance looks below a root for what makes it useless to ask the kernel.
func hindrance(root string) error {
	if _, err := os.Stat(filepath.Join(root, typesPath)); err != nil {
		return &Unavailable{Reason: "the kernel does not describe its types (" + typesPath + " is not there)", Remedy: needsKernel}
	}
	if mode, err := os.ReadFile(filepath.Join(root, lockdownPath)); err == nil && strings.Contains(string(mode), "[confidentiality]") {
		return &Unavailable{Reason: "the kernel is locked down, and its memory must not be read (" + lockdownPath + ": confidentiality)",
			Remedy: "lockdown=integrity at boot allows it"}
	}
	return nil
}

// initialPIDs is the number of the host's pid namespace (PROC_PID_INIT_INO in
// include/linux/proc_ns.h).
const initialPIDs = 0xeffffffc

// seesHost refuses another pid namespace: the kernel's numbers of processes are the host's.
func seesHost() error {
	const own = "/proc/self/ns/pid"
	var st unix.Stat_t
	if err := unix.Stat(own, &st); err != nil {
		return &os.PathError{Op: "stat", Path: own, Err: err}
	}
	if st.Ino != initialPIDs {
		return &Unavailable{Reason: "weir is in a pid namespace of its own, and would take others' processes for the target's", Remedy: "run it on the host, or in a container with the host's pids"}
	}
	return nil
}

// unavailable explains why what every trace needs was refused.
func unavailable(err error) error {
	var known *Unavailable
	if errors.As(err, &known) {
		return err
	}
	e := &Unavailable{Err: err, Reason: err.Error()}
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		e.Reason = "the kernel does not let this process load BPF programs"
		e.Remedy = "run weir as root, outside of containers (it takes CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN)"
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, btf.ErrNotFound), errors.Is(err, unix.ENOSYS):
		e.Remedy = needsKernel
	}
	return e
}

// reason is a refusal in a line.
func reason(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.ReplaceAll(text, " (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", "") // it is not
}
