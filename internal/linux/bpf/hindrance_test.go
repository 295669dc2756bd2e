package bpf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
		want  string // the message; empty: nothing hinders
	}{
		{"no types", nil, "trace: the kernel has no type information (/sys/kernel/btf/vmlinux is not there); boot Linux 5.10 or later, with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF"},
		{"confidential", map[string]string{typesPath: "x", lockdownPath: "none integrity [confidentiality]\n"},
			"trace: the kernel is locked down, so BPF must not read its memory (/sys/kernel/security/lockdown: confidentiality); lockdown=integrity at boot allows it"},
		{"integrity", map[string]string{typesPath: "x", lockdownPath: "none [integrity] confidentiality\n"}, ""},
		{"none", map[string]string{typesPath: "x", lockdownPath: "[none] integrity confidentiality\n"}, ""},
		{"no lockdown", map[string]string{typesPath: "x"}, ""},
	} {
		err := Hindrance(host(t, c.files), "trace", "5.10")
		var cannot *Unavailable
		if errors.As(err, &cannot) != (c.want != "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
