package fullguest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/weir-io/weir/lab/cache"
	"github.com/weir-io/weir/lab/debian"
	"github.com/weir-io/weir/lab/kernel"
)

// The files of a kernel's cache entry. A program of user-mode Linux finds its
// own suite's loader and C library below the entry (see kernel.Interpreter).
const (
	kernelFile  = "kernel"
	modulesFile = "modules.ext4"
)

// modulesBytes is the size of the modules' disk; the file is sparse. All modules
// of a user-mode Linux take 110 MB.
const modulesBytes = 400 << 20

// umlKernel gives a kernel's folder and its version, "6.1", building if need be.
func umlKernel(ctx context.Context, a *debian.Archive, c *cache.Cache, version string) (dir, is string, err error) {
	source, err := kernel.Find(ctx, a, kernel.UML, version)
	if err != nil {
		return "", "", err
	}
	lines := append(source.Recipe(), "full kernel 1", fmt.Sprintf("bytes %d", modulesBytes))
	dir, err = c.Get(ctx, "full-uml-"+source.Version, lines, func(ctx context.Context, dir string) error {
		return buildKernel(ctx, a, source, dir)
	})
	return dir, source.Version, err
}

func buildKernel(ctx context.Context, a *debian.Archive, source kernel.Source, dir string) (err error) {
	temp, err := os.MkdirTemp("", "weir-lab-kernel-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	tree, err := source.Unpack(ctx, a, temp)
	if err != nil {
		return err
	}
	// The disk is mounted on /usr/lib/modules: its root has a folder per release.
	modules := filepath.Join(tree.Root, "lib/modules")
	if err := pack(ctx, modules, filepath.Join(dir, modulesFile), modulesBytes); err != nil {
		return err
	}
	if err := copyFile(tree.Image, filepath.Join(dir, kernelFile), 0o755); err != nil {
		return err
	}
	return os.CopyFS(dir, os.DirFS(tree.Libs))
}

func copyFile(from, to string, mode os.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
