package kernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// Interpreter is where a relocated UML program looks for its dynamic loader:
// below its working folder. Its other libraries come by LD_LIBRARY_PATH.
const Interpreter = "lib64/ld-linux-x86-64.so.2"

// relocate rewrites the program's ELF interpreter from an absolute path to one
// relative to the working folder, so that it starts with its own suite's loader
// and needs neither chroot nor the host's C library. Starting the loader with
// the program as its argument does not do: UML finds its memory's end by brk,
// which then lies elsewhere, and starts itself anew through /proc/self/exe.
func relocate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("relocate: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("relocate: %w", err)
	}
	old := []byte("/" + Interpreter + "\x00")
	if n := bytes.Count(data, old); n != 1 {
		return fmt.Errorf("relocate %s: interpreter found %d times", path, n)
	}
	data = bytes.Replace(data, old, []byte(Interpreter+"\x00\x00"), 1)
	if err := os.WriteFile(path, data, info.Mode().Perm()); err != nil {
		return fmt.Errorf("relocate: %w", err)
	}
	return nil
}

// collectLibs copies what libc6 has to the places a relocated program looks at.
func collectLibs(raw, to string) error {
	loader, err := one(filepath.Join(raw, "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
		filepath.Join(raw, "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"))
	if err != nil {
		return fmt.Errorf("collect libraries: %w", err)
	}
	copies := map[string]string{loader: filepath.Join(to, Interpreter)}
	for _, name := range []string{"libc.so.6", "libm.so.6", "libpthread.so.0", "librt.so.1", "libdl.so.2", "libutil.so.1"} {
		copies[filepath.Join(filepath.Dir(loader), name)] = filepath.Join(to, "lib", name)
	}
	for from, at := range copies {
		data, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("collect libraries: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return fmt.Errorf("collect libraries: %w", err)
		}
		if err := os.WriteFile(at, data, 0o755); err != nil {
			return fmt.Errorf("collect libraries: %w", err)
		}
	}
	return nil
}
