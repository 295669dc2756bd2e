package inode

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

	"github.com/weir-io/weir/internal/cgroupfs"
)

func TestHindrance(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var cannot *Unavailable
	if err := hindrance(root); !errors.As(err, &cannot) || !strings.Contains(cannot.Reason, types) {
		t.Errorf("without types: %v", err)
	}
	write(types, "")
	for mode, ok := range map[string]bool{
		"[none] integrity confidentiality\n": true,
		"none [integrity] confidentiality\n": true,
		"none integrity [confidentiality]\n": false,
	} {
		write(lockdown, mode)
		if err := hindrance(root); (err == nil) != ok || err != nil && !errors.As(err, &cannot) {
			t.Errorf("lockdown %q: %v", mode, err)
		}
	}
}

func TestUnavailable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("map create: %w", unix.EPERM), "does not let this process load a BPF program"},
		{fmt.Errorf("load: %w", ebpf.ErrNotSupported), "no BPF iterator over open files"},
		{fmt.Errorf("attach: %w", btf.ErrNotFound), "no BPF iterator over open files"},
		{fmt.Errorf("load: %w", &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"R1 invalid"}}), "did not accept the program"},
		{errors.New("weir has no BPF program for s390x"), "weir has no BPF program for s390x"},
	} {
		err := unavailable(c.err)
		var cannot *Unavailable
		if !errors.As(err, &cannot) || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("unavailable(%v) = %v, want %q in it", c.err, err, c.want)
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
	var cannot *Unavailable
	if _, err := Open(groups); !errors.As(err, &cannot) || !strings.Contains(cannot.Remedy, "--root") {
		t.Errorf("Open: %v", err)
	}
}
