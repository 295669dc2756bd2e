package small

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/lab/internal/cache"
	"github.com/weir-io/weir/lab/internal/debian"
	"github.com/weir-io/weir/lab/internal/initramfs"
	"github.com/weir-io/weir/lab/internal/kernel"
)

// Image is what a small guest boots: a cache entry.
type Image struct {
	Kind    kernel.Kind
	Version string // "6.1"
	Dir     string // has kernel and initrd, and for UML lib64 and lib
}

// The files of an image.
const (
	kernelFile = "kernel"
	initrdFile = "initrd"
)

// Images builds images, or finds them in the cache.
type Images struct {
	Archive *debian.Archive
	Cache   *cache.Cache
	Init    string // the init program
	Temp    string // folder to build in
}

// Get fetches the kernel's packages and makes the image of them.
func (i Images) Get(ctx context.Context, kind kernel.Kind, version string) (Image, error) {
	source, err := kernel.Find(ctx, i.Archive, kind, version)
	if err != nil {
		return Image{}, err
	}
	spec := contents(kind, i.Init)
	recipe, err := spec.Recipe()
	if err != nil {
		return Image{}, err
	}
	name := string(kind) + "-" + source.Version
	dir, err := i.Cache.Get(ctx, name, append(recipe, source.Recipe()...), func(ctx context.Context, dir string) error {
		return i.build(ctx, dir, source, spec)
	})
	if err != nil {
		return Image{}, err
	}
	return Image{Kind: kind, Version: source.Version, Dir: dir}, nil
}

func (i Images) build(ctx context.Context, dir string, source kernel.Source, spec initramfs.Spec) (err error) {
	temp, err := os.MkdirTemp(i.Temp, "image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	tree, err := source.Unpack(ctx, i.Archive, temp)
	if err != nil {
		return err
	}
	if err := initramfs.Write(ctx, filepath.Join(dir, initrdFile), filepath.Join(temp, "stage"), spec, tree); err != nil {
		return err
	}
	if err := moveFile(tree.Image, filepath.Join(dir, kernelFile)); err != nil {
		return err
	}
	if source.Kind != kernel.UML {
		return nil
	}
	return os.CopyFS(dir, os.DirFS(tree.Libs))
}

func moveFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, info.Mode().Perm()|0o400); err != nil {
		return fmt.Errorf("move %s: %w", from, err)
	}
	return os.Remove(from)
}

// contents chooses modules and tools. Which of the modules exist depends on the
// kernel: in UML most are built in. Crypto modules are asked for by name by the
// file systems at mount time, which no dependency shows.
func contents(kind kernel.Kind, init string) initramfs.Spec {
	modules := strings.Fields(`loop dm-mod dm-delay dm-flakey dm-thin-pool dm-snapshot overlay
		ext4 xfs btrfs vfat nls_cp437 nls_ascii nls_iso8859-1 quota_v2 quota_tree bfq null_blk raid0 raid1 md-mod
		crc32c_generic crc32c_intel crc32_generic xxhash_generic sha256_generic blake2b_generic
		crc32c crc32c-cryptoapi libcrc32c`)
	// File systems that are mounted at once would each ask for quota_v2: all but the first
	// fail with ESRCH while it starts.
	load := strings.Fields("loop dm-mod overlay quota_v2")
	if kind == kernel.Cloud {
		modules = append(modules, strings.Fields("virtio_pci virtio_blk virtio_rng scsi_debug sd_mod nvme configfs")...)
		load = append([]string{"virtio_pci", "virtio_blk"}, load...)
	}
	return initramfs.Spec{
		Init:    init,
		Modules: modules,
		Load:    load,
		Tools:   strings.Fields("mkfs.ext4 mkfs.xfs mkfs.btrfs btrfs resize2fs xfs_growfs tune2fs e2fsck chattr quotaon xfs_quota lvm dmsetup losetup sfdisk dd cgconfigparser sqlite3 git"),
	}
}
