package initramfs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// paths finds programs on this host. Those that are not installed are left out:
// a test that needs one says so, and is skipped.
func paths(tools []string) []string {
	var found []string
	for _, name := range tools {
		for _, dir := range []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err == nil {
				found = append(found, path)
				break
			}
		}
	}
	return found
}

// addTool copies a program and the libraries that ldd(1) names. A symbolic link
// (mkfs.ext4 is one, to mke2fs) becomes a copy: the program looks at its name.
func addTool(ctx context.Context, stage, path string) error {
	if err := copyFile(path, filepath.Join(stage, "usr/sbin", filepath.Base(path))); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "ldd", path).CombinedOutput()
	if err != nil {
		if strings.Contains(string(out), "not a dynamic executable") {
			return nil
		}
		return fmt.Errorf("ldd %s: %w: %s", path, err, out)
	}
	for _, lib := range libraries(string(out)) {
		to := filepath.Join(stage, lib)
		if _, err := os.Stat(to); err == nil {
			continue
		}
		if err := copyFile(lib, to); err != nil {
			return err
		}
	}
	return nil
}

// libraries reads lines "libc.so.6 => /lib/… (0x…)" and "/lib64/ld-… (0x…)".
func libraries(ldd string) []string {
	var libs []string
	for line := range strings.Lines(ldd) {
		if _, after, ok := strings.Cut(line, "=>"); ok {
			line = after
		}
		if fields := strings.Fields(line); len(fields) > 0 && filepath.IsAbs(fields[0]) {
			libs = append(libs, fields[0])
		}
	}
	return libs
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func fingerprint(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("file %s %x", filepath.Base(path), h.Sum(nil)), nil
}
