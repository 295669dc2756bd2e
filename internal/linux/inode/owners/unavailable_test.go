package owners

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

func TestRefused(t *testing.T) {
	const needs = "; boot Linux 5.8 or later, with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF"
	rejected := fmt.Errorf("load: %w", &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"R1 invalid"}})
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("map create: %w", unix.EPERM), "the kernel does not let this process load BPF programs; run weir as root and outside of containers (it needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN)"},
		{fmt.Errorf("load: %w", ebpf.ErrNotSupported), "the kernel has no BPF iterator over open files (load: not supported)" + needs},
		{fmt.Errorf("attach: %w", btf.ErrNotFound), "the kernel has no BPF iterator over open files (attach: not found)" + needs},
		{rejected, "the kernel did not accept a BPF program: " + rejected.Error()},
		{errors.New("weir has no BPF program for s390x"), "weir has no BPF program for s390x"},
	} {
		err := refused(c.err)
		if !errors.Is(err, c.err) || err.Error() != "read the owners of inodes: "+c.want {
			t.Errorf("refused(%v) = %q, want %q", c.err, err, c.want)
		}
	}
}

// Owners are the running kernel's; a copy of another host's files has none.
func TestOpenOfAFixture(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc/1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc/1/mountinfo"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	groups, err := cgroupfs.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer groups.Close()
	var cannot *bpf.Unavailable
	if _, err := Open(groups); !errors.As(err, &cannot) || !strings.Contains(cannot.Remedy, "ask about this host") {
		t.Errorf("Open: %v", err)
	}
}
