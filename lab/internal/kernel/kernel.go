package kernel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/weir-io/weir/lab/internal/debian"
)

// Kind is what a kernel is built for.
type Kind string

// The kinds of kernel.
const (
	Cloud Kind = "cloud" // a PC, as QEMU emulates it
	UML   Kind = "uml"   // a process of the host
)

func (k Kind) meta() string {
	if k == UML {
		return "user-mode-linux"
	}
	return "linux-image-cloud-amd64"
}

// Newest asks for the highest version in any suite.
const Newest = "newest"

// suites has the suite that carries each kernel version.
func suite(version string) (string, bool) {
	s, ok := map[string]string{"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie"}[version]
	return s, ok
}

// Source says where a kernel comes from. Packages are fetched already.
type Source struct {
	Kind     Kind
	Version  string // "6.1"
	Packages []debian.Package
}

// Find fetches the packages of one kernel version: 5.10, 6.1, 6.12, or Newest.
func Find(ctx context.Context, a *debian.Archive, kind Kind, version string) (Source, error) {
	s, err := find(ctx, a, kind, version)
	if err != nil {
		return Source{}, fmt.Errorf("find %s kernel %s: %w", kind, version, err)
	}
	return s, nil
}

func find(ctx context.Context, a *debian.Archive, kind Kind, version string) (Source, error) {
	from, ok := suite(version)
	if version == Newest {
		newest, full, err := a.Newest(ctx, kind.meta())
		if err != nil {
			return Source{}, err
		}
		from, version = newest, short(full)
	} else if !ok {
		return Source{}, fmt.Errorf("no suite is known to carry it")
	}
	names, err := packages(ctx, a, kind, from)
	if err != nil {
		return Source{}, err
	}
	s := Source{Kind: kind, Version: version}
	for _, name := range names {
		p, err := a.Fetch(ctx, from, name)
		if err != nil {
			return Source{}, err
		}
		s.Packages = append(s.Packages, p)
	}
	return s, nil
}

// NewestVersion is what Newest stands for: "7.2".
func NewestVersion(ctx context.Context, a *debian.Archive, kind Kind) (string, error) {
	_, full, err := a.Newest(ctx, kind.meta())
	return short(full), err
}

// short turns "7.2.13-1" and "7.2um1" into "7.2".
func short(version string) string {
	if m := regexp.MustCompile(`^\d+\.\d+`).FindString(version); m != "" {
		return m
	}
	return version
}

// packages resolves the metapackage. Since 6.19 the image package is itself a
// metapackage for linux-binary-… and linux-modules-….
func packages(ctx context.Context, a *debian.Archive, kind Kind, from string) ([]string, error) {
	if kind == UML {
		return []string{kind.meta(), "libc6"}, nil
	}
	image, err := depends(ctx, a, from, kind.meta(), "linux-image-")
	if err != nil {
		return nil, err
	}
	if len(image) != 1 {
		return nil, fmt.Errorf("%s of %s depends on %d images", kind.meta(), from, len(image))
	}
	parts, err := depends(ctx, a, from, image[0], "linux-binary-", "linux-modules-")
	if err != nil {
		return nil, err
	}
	return append(image, parts...), nil
}

func depends(ctx context.Context, a *debian.Archive, from, pkg string, prefixes ...string) ([]string, error) {
	all, err := a.Depends(ctx, from, pkg)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// Recipe is what the kernel is made from, for a cache's key.
func (s Source) Recipe() []string {
	recipe := []string{"kernel " + string(s.Kind) + " " + s.Version}
	for _, p := range s.Packages {
		recipe = append(recipe, "package "+p.Name+" "+p.Version+" "+p.SHA256)
	}
	return recipe
}

// Tree is an unpacked kernel.
type Tree struct {
	Release string // uname -r
	Image   string // the file to boot
	Root    string // has lib/modules/RELEASE, with modules.dep
	Libs    string // for UML: lib64/ld-linux-x86-64.so.2 and lib/libc.so.6 are below
}

// Unpack extracts the packages below dir and prepares image and modules.
func (s Source) Unpack(ctx context.Context, a *debian.Archive, dir string) (Tree, error) {
	raw := filepath.Join(dir, "raw")
	for _, p := range s.Packages {
		if err := a.Unpack(ctx, p, raw); err != nil {
			return Tree{}, err
		}
	}
	t := Tree{Root: filepath.Join(dir, "root"), Libs: filepath.Join(dir, "libs")}
	if err := t.fill(ctx, s.Kind, raw); err != nil {
		return Tree{}, fmt.Errorf("unpack kernel %s: %w", s.Version, err)
	}
	return t, nil
}

func (t *Tree) fill(ctx context.Context, kind Kind, raw string) error {
	modules, err := one(filepath.Join(raw, "lib/modules/*/kernel"),
		filepath.Join(raw, "usr/lib/modules/*/kernel"), filepath.Join(raw, "usr/lib/uml/modules/*/kernel"))
	if err != nil {
		return err
	}
	modules = filepath.Dir(modules)
	t.Release = filepath.Base(modules)
	to := filepath.Join(t.Root, "lib/modules", t.Release)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if kind == UML {
		t.Image = filepath.Join(raw, "usr/bin/linux.uml")
		if err := relocate(t.Image); err != nil {
			return err
		}
		if err := collectLibs(raw, t.Libs); err != nil {
			return err
		}
	} else if t.Image, err = one(filepath.Join(raw, "boot/vmlinuz-*"), filepath.Join(modules, "vmlinuz")); err != nil {
		return err
	}
	if kind == Cloud && filepath.Dir(t.Image) == modules {
		image := filepath.Join(raw, "vmlinuz") // out of the folder that moves away
		if err := os.Rename(t.Image, image); err != nil {
			return err
		}
		t.Image = image
	}
	if err := os.Rename(modules, to); err != nil {
		return err
	}
	return Depmod(ctx, t.Root, t.Release)
}

// one gives the single match of the first pattern that matches anything.
func one(patterns ...string) (string, error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return "", fmt.Errorf("%s: %d files", pattern, len(found))
		}
	}
	return "", fmt.Errorf("none of %s", strings.Join(patterns, ", "))
}
