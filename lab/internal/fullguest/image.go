package fullguest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/lab/internal/cache"
	"github.com/weir-io/weir/lab/internal/debian"
)

// imageFile is the root file system in its cache entry.
const imageFile = "root.ext4"

// image gives the path of a suite's root file system, building it if need be,
// which takes one to two minutes and must be done by root.
func image(ctx context.Context, a *debian.Archive, c *cache.Cache, suite string) (string, error) {
	lines, err := recipe(suite)
	if err != nil {
		return "", err
	}
	dir, err := c.Get(ctx, "full-"+suite, lines, func(ctx context.Context, dir string) error {
		return buildImage(ctx, a, suite, dir)
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, imageFile), nil
}

func buildImage(ctx context.Context, a *debian.Archive, suite, dir string) (err error) {
	tree := filepath.Join(dir, "tree")
	defer func() { err = errors.Join(err, os.RemoveAll(tree)) }()
	if err := bootstrap(ctx, a, suite, dir, tree); err != nil {
		return err
	}
	if err := furnish(tree); err != nil {
		return fmt.Errorf("furnish %s: %w", tree, err)
	}
	return pack(ctx, tree, filepath.Join(dir, imageFile), imageBytes)
}

// bootstrap installs the suite's packages below tree, without what nobody reads.
func bootstrap(ctx context.Context, a *debian.Archive, suite, dir, tree string) error {
	uri, signedBy, err := a.Mirror(ctx, suite)
	if err != nil {
		return err
	}
	entry := fmt.Sprintf("Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n", uri, suite)
	if signedBy != "" {
		entry += "Signed-By: " + signedBy + "\n"
	}
	sources := filepath.Join(dir, "debian.sources")
	if err := os.WriteFile(sources, []byte(entry), 0o644); err != nil {
		return fmt.Errorf("bootstrap %s: %w", suite, err)
	}
	args := []string{
		"--mode=auto", "--variant=apt", "--quiet",
		"--include=" + strings.Join(packages(suite), ","),
		`--aptopt=APT::Install-Recommends "false"`,
		`--aptopt=Acquire::Languages "none"`,
		"--dpkgopt=force-unsafe-io",
	}
	for _, unread := range []string{"man", "locale", "doc", "info", "bash-completion", "zsh"} {
		args = append(args, "--dpkgopt=path-exclude=/usr/share/"+unread+"/*")
	}
	if err := tool(ctx, "mmdebstrap", append(args, suite, tree, sources)...); err != nil {
		return fmt.Errorf("bootstrap %s: %w", suite, err)
	}
	return os.Remove(sources)
}

// pack makes an ext4 file system of tree in a sparse file. It has no journal:
// nobody keeps what is written to it.
func pack(ctx context.Context, tree, path string, bytes int64) error {
	if err := sparse(path, bytes); err != nil {
		return fmt.Errorf("pack %s: %w", tree, err)
	}
	if err := tool(ctx, "mkfs.ext4", "-q", "-F", "-O", "^has_journal",
		"-E", "lazy_itable_init=0,nodiscard", "-d", tree, path); err != nil {
		return fmt.Errorf("pack %s: %w", tree, err)
	}
	return nil
}

func sparse(path string, bytes int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, bytes)
}
