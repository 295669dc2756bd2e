package refusal

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

func TestOf(t *testing.T) {
	const (
		rights = "trace: the kernel does not let this process load BPF programs; run weir as root and outside of containers (it needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN)"
		kernel = "; boot Linux 5.10 or later, with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF"
	)
	rejected := fmt.Errorf("load: %w", &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"R1 invalid"}})
	for _, c := range []struct {
		err     error
		want    string
		lacking bool
	}{
		{fmt.Errorf("load: %w", unix.EPERM), rights, false},
		{fmt.Errorf("load: %w", unix.EACCES), rights, false},
		{errors.Join(unix.EPERM, ebpf.ErrNotSupported), rights, false},
		{fmt.Errorf("load: %w", ebpf.ErrNotSupported), "trace: load: not supported" + kernel, true},
		{fmt.Errorf("types: %w", btf.ErrNotFound), "trace: types: not found" + kernel, true},
		{unix.ENOSYS, "trace: function not implemented" + kernel, true},
		{rejected, "trace: the kernel did not accept a BPF program: " + rejected.Error(), false},
		{errors.New("broken"), "trace: broken", false},
	} {
		err := Of("trace", "5.10", c.err)
		if err.Error() != c.want {
			t.Errorf("%v: %q, want %q", c.err, err, c.want)
		}
		if !errors.Is(err, c.err) {
			t.Errorf("%v: the cause is lost in %v", c.err, err)
		}
		if got := Lacking(c.err); got != c.lacking {
			t.Errorf("%v: lacking: %t", c.err, got)
		}
	}
}
