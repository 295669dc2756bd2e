package fullguest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/lab/internal/initramfs"
	"github.com/weir-io/weir/lab/internal/kernel"
	"github.com/weir-io/weir/lab/internal/machine"
)

// A Kernel boots any full system: a cache entry.
type Kernel struct {
	Kind    kernel.Kind
	Version string // "6.1"
	Dir     string
}

// The files of a kernel's entry. User-mode Linux finds its own suite's loader and C
// library in it too (see kernel.Interpreter). All others boot an initramfs.
const (
	kernelFile = "kernel"
	initrdFile = "initrd"
)

// modules is the disk that goes on /usr/lib/modules, and has a folder per release.
// User-mode Linux has nothing but ext4 to read it with before it is mounted.
func (k Kernel) modules() string {
	if k.Kind == kernel.UML {
		return filepath.Join(k.Dir, "modules.ext4")
	}
	return filepath.Join(k.Dir, "modules.erofs")
}

func (k Kernel) carrier() machine.Carrier {
	if k.Kind == kernel.UML {
		return machine.UML{Dir: k.Dir, Kernel: kernelFile, Memory: memory}
	}
	return machine.QEMU{Kernel: filepath.Join(k.Dir, kernelFile), Initrd: filepath.Join(k.Dir, initrdFile), Memory: memory}
}

// modulesBytes is the size of an ext4 modules' disk; the file is sparse. All modules
// of a user-mode Linux take 110 MB.
const modulesBytes = 400 << 20

// Kernel fetches a kernel's packages and makes of them what a full guest boots.
// Versions are those that package kernel knows.
func (b Builder) Kernel(ctx context.Context, kind kernel.Kind, version string) (Kernel, error) {
	source, err := kernel.Find(ctx, b.Archive, kind, version)
	if err != nil {
		return Kernel{}, err
	}
	spec := first(b.Agent)
	lines := append(source.Recipe(), "full kernel 2", fmt.Sprintf("bytes %d", modulesBytes))
	if kind != kernel.UML {
		more, err := spec.Recipe()
		if err != nil {
			return Kernel{}, err
		}
		lines = append(lines, more...)
	}
	k := Kernel{Kind: kind, Version: source.Version}
	name := "full-" + string(kind) + "-" + source.Version
	k.Dir, err = b.Cache.Get(ctx, name, lines, func(ctx context.Context, dir string) error {
		return b.buildKernel(ctx, source, spec, dir)
	})
	return k, err
}

// first is the initramfs that finds the root disk and hands over to its systemd.
func first(init string) initramfs.Spec {
	load := strings.Fields("virtio_pci virtio_blk ext4 erofs")
	// Checksums are asked for at mount time, which no dependency shows.
	sums := strings.Fields("crc32c_generic crc32c_intel crc32c crc32c-cryptoapi libcrc32c")
	return initramfs.Spec{Init: init, Modules: append(sums, load...), Load: load}
}

func (b Builder) buildKernel(ctx context.Context, source kernel.Source, spec initramfs.Spec, dir string) (err error) {
	temp, err := os.MkdirTemp(b.Temp, "kernel-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	tree, err := source.Unpack(ctx, b.Archive, temp)
	if err != nil {
		return err
	}
	if err := copyFile(tree.Image, filepath.Join(dir, kernelFile), 0o755); err != nil {
		return err
	}
	k := Kernel{Kind: source.Kind, Dir: dir}
	modules := filepath.Join(tree.Root, "lib/modules")
	if source.Kind == kernel.UML {
		if err := pack(ctx, modules, k.modules(), modulesBytes); err != nil {
			return err
		}
		return os.CopyFS(dir, os.DirFS(tree.Libs))
	}
	if err := tool(ctx, "mkfs.erofs", k.modules(), modules); err != nil {
		return fmt.Errorf("pack %s: %w", modules, err)
	}
	return initramfs.Write(ctx, filepath.Join(dir, initrdFile), filepath.Join(temp, "stage"), spec, tree)
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
