package kernel

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Depmod writes modules.dep and modules.alias below root/lib/modules/release.
func Depmod(ctx context.Context, root, release string) error {
	out, err := exec.CommandContext(ctx, "depmod", "-b", root, release).CombinedOutput()
	if err != nil {
		return fmt.Errorf("depmod %s: %w: %s", release, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Modules are paths, relative to lib/modules/RELEASE, of the modules named and of
// all that they depend on, sorted. Names that the kernel has not (they are built
// in, or of another version) are passed over: what must be there is a test's to say.
func (t Tree) Modules(names []string) ([]string, error) {
	deps, err := readDeps(filepath.Join(t.Root, "lib/modules", t.Release, "modules.dep"))
	if err != nil {
		return nil, fmt.Errorf("choose modules: %w", err)
	}
	byName := make(map[string]string)
	for path := range deps {
		byName[moduleName(path)] = path
	}
	chosen := make(map[string]bool)
	for _, name := range names {
		path, ok := byName[strings.ReplaceAll(name, "-", "_")]
		if !ok {
			continue
		}
		chosen[path] = true
		for _, dep := range deps[path] { // depmod lists them with theirs
			chosen[dep] = true
		}
	}
	var paths []string
	for path := range chosen {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, nil
}

// moduleName turns "kernel/drivers/md/dm-mod.ko.xz" into "dm_mod".
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func readDeps(path string) (map[string][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	deps := make(map[string][]string)
	s := bufio.NewScanner(f)
	for s.Scan() {
		module, rest, ok := strings.Cut(s.Text(), ":")
		if !ok {
			return nil, fmt.Errorf("parse %s: %q", path, s.Text())
		}
		deps[module] = strings.Fields(rest)
	}
	return deps, s.Err()
}

// CopyModule copies one module to a path without the compression's suffix.
func CopyModule(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("copy module: %w", err)
	}
	var data []byte
	var err error
	switch filepath.Ext(from) {
	case ".xz":
		data, err = exec.CommandContext(ctx, "xz", "-dc", from).Output()
	case ".zst":
		data, err = exec.CommandContext(ctx, "zstd", "-dcq", from).Output()
	default:
		data, err = os.ReadFile(from)
	}
	if err != nil {
		return fmt.Errorf("copy module %s: %w", from, err)
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		return fmt.Errorf("copy module: %w", err)
	}
	return nil
}
