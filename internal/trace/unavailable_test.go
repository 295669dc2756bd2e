package trace

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
)

// host is a root with files of a kernel.
func host(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestHindrance(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string // in the message; none: nothing hinders
	}{
		{"no types", nil, []string{"trace: the kernel does not describe its types", typesPath, "CONFIG_DEBUG_INFO_BTF"}},
		{"confidential", map[string]string{typesPath: "x", lockdownPath: "none integrity [confidentiality]\n"}, []string{"locked down", lockdownPath, "lockdown=integrity"}},
		{"integrity", map[string]string{typesPath: "x", lockdownPath: "none [integrity] confidentiality\n"}, nil},
		{"no lockdown", map[string]string{typesPath: "x"}, nil},
	} {
		err := hindrance(host(t, c.files))
		var cannot *Unavailable
		if errors.As(err, &cannot) != (c.want != nil) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, part := range c.want {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", c.name, err, part)
			}
		}
	}
}

func TestUnavailable(t *testing.T) {
	known := &Unavailable{Reason: "known"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("load: %w", unix.EPERM), "run weir as root"},
		{fmt.Errorf("load: %w", unix.EACCES), "CAP_BPF"},
		{fmt.Errorf("types: %w", ebpf.ErrNotSupported), needsKernel},
		{fmt.Errorf("types: %w", btf.ErrNotFound), needsKernel},
		{unix.ENOSYS, needsKernel},
		{errors.New("broken"), "trace: broken"},
		{fmt.Errorf("again: %w", known), "again: trace: known"},
	} {
		err := unavailable(c.err)
		var cannot *Unavailable
		if !errors.As(err, &cannot) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.err, err, c.want)
		}
		if !errors.Is(err, c.err) {
			t.Errorf("%v: the cause is lost in %v", c.err, err)
		}
	}
	if got := reason(errors.New("one\ntwo")); got != "one" {
		t.Errorf("a reason of two lines is %q", got)
	}
}
