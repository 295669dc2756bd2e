package bpf

import (
	"os"
	"path/filepath"
	"strings"
)

const (
	typesPath    = "/sys/kernel/btf/vmlinux"
	lockdownPath = "/sys/kernel/security/lockdown"
)

// Hindrance looks below a root for what makes it useless to ask the kernel: the error is
// an *Unavailable, of op. kernel is the first version that has what op takes: "5.10".
func Hindrance(root, op, kernel string) error {
	if _, err := os.Stat(filepath.Join(root, typesPath)); err != nil {
		return &Unavailable{Op: op, Reason: "the kernel has no type information (" + typesPath + " is not there)", Remedy: Needs(kernel)}
	}
	// A host without that file is not locked down, or does not say so and refuses later.
	if mode, err := os.ReadFile(filepath.Join(root, lockdownPath)); err == nil && strings.Contains(string(mode), "[confidentiality]") {
		return &Unavailable{Op: op, Reason: "the kernel is locked down, so BPF must not read its memory (" + lockdownPath + ": confidentiality)",
			Remedy: "lockdown=integrity at boot allows it"}
	}
	return nil
}
