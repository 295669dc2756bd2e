package quota

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A fileSystem is a mounted file system that can have project quotas.
type fileSystem struct {
	mount blkdev.Mount
	node  string   // its device; empty: not known
	root  *os.File // the mount's
	// kernel answers for its quotas.
	kernel kernel
	block  uint64 // bytes
	id     string // which it is, wherever it is mounted
	// all are its mounts here; it is mounted anew, with another option, after the last is gone.
	all []blkdev.Mount
}

// sync brings to the disk what was changed.
func (f *fileSystem) sync() error {
	if err := f.kernel.sync(f); err != nil {
		return fmt.Errorf("sync %s: %w", f.mount.Point, err)
	}
	return nil
}

func (f *fileSystem) close() { _ = f.root.Close() }

// hasProjects reports whether a kind of file system can have project quotas.
func hasProjects(fstype string) bool { return fstype == "xfs" || fstype == "ext4" }

// fileSystemOf finds what an open directory is on.
func (s Store) fileSystemOf(ctx context.Context, dir *os.File) (*fileSystem, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: dir.Name(), Err: err}
	}
	number := blkdev.Number{Major: unix.Major(st.Dev), Minor: unix.Minor(st.Dev)}
	mounts, err := s.Devices.Mounts(0)
	if err != nil {
		return nil, err
	}
	var best blkdev.Mount
	var all []blkdev.Mount
	for _, m := range mounts {
		if m.Number != number {
			continue
		}
		all = append(all, m)
		if holds := m.Point == "/" || dir.Name() == m.Point || strings.HasPrefix(dir.Name(), m.Point+"/"); holds && len(m.Point) >= len(best.Point) {
			best = m
		}
	}
	if best.Point == "" {
		return nil, s.notHere(ctx, dir.Name())
	}
	if !hasProjects(best.FSType) {
		return nil, withoutQuotas(dir.Name(), best)
	}
	f, err := s.openMount(ctx, best)
	if err == nil {
		f.all = all
	}
	return f, err
}

// notHere explains a directory whose file system has a number that no mount has: btrfs.
func (s Store) notHere(ctx context.Context, path string) error {
	if chain, err := s.Devices.Resolve(ctx, path); err == nil {
		if m, is := chain.FileSystem(); is {
			return withoutQuotas(path, m)
		}
	}
	return &fault.Unsupported{Feature: "quota on " + path, Reason: "no mount has the device number of its file system, so weir cannot tell which file system that is", Remedy: "name a directory on XFS or ext4"}
}

// withoutQuotas says that the file system of a path has no project quotas.
func withoutQuotas(path string, m blkdev.Mount) error {
	err := &fault.Unsupported{Feature: "quota on " + path, Reason: fmt.Sprintf("%s is %s, and only XFS and ext4 have project quotas", m.Point, m.FSType)}
	switch m.FSType {
	case "btrfs":
		err.Remedy = "btrfs has its own quotas, for subvolumes: btrfs qgroup limit SIZE DIR"
	case "overlay":
		err.Remedy = "name the container (docker:NAME), or the upper directory, which takes the writes"
		return err
	}
	return fault.With(err, fault.Remedy{Do: fault.UseVolume})
}

// openMount opens a mount that can have quotas. If another mount hides it, the error is
// os.ErrNotExist.
func (s Store) openMount(ctx context.Context, m blkdev.Mount) (*fileSystem, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, m.Point, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: m.Point, Err: err}
	}
	root := os.NewFile(uintptr(fd), m.Point)
	var st unix.Stat_t
	var room unix.Statfs_t
	if err := errors.Join(unix.Fstat(int(root.Fd()), &st), unix.Fstatfs(int(root.Fd()), &room)); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if (blkdev.Number{Major: unix.Major(st.Dev), Minor: unix.Minor(st.Dev)}) != m.Number {
		return nil, errors.Join(os.ErrNotExist, root.Close())
	}
	f := &fileSystem{mount: m, root: root, kernel: s.kernel(), block: uint64(room.Bsize), id: identity(root, room)}
	if d, err := s.Devices.Device(ctx, m.Number); err == nil {
		f.node = d.Node
	}
	return f, nil
}

// identity tells a file system from others: XFS's UUID, and what ext4 makes of its own.
func identity(root *os.File, room unix.Statfs_t) string {
	const fsGeometry = 0x80705864 // XFS_IOC_FSGEOMETRY_V1
	var geometry struct {
		_    [64]byte
		uuid [16]byte
		_    [32]byte
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, root.Fd(), fsGeometry, uintptr(unsafe.Pointer(&geometry))); errno == 0 {
		return fmt.Sprintf("%x", geometry.uuid)
	}
	return fmt.Sprintf("%x", room.Fsid.Val)
}

// mustBound refuses a file system that bounds no projects now, with the commands that have
// it do so. weir mounts nothing anew by itself.
func (f *fileSystem) mustBound() error {
	counts, bounds, err := f.state()
	if err != nil || bounds {
		return err
	}
	e := &fault.Unsupported{Feature: "quota on " + f.mount.Point}
	node := f.node
	if node == "" {
		node = f.mount.Source
	}
	point, unmount := f.mountings()
	node = cmdline.Quote(node)
	remount := fmt.Sprintf("mount -o prjquota %s %s", node, point)
	later := "; and put prjquota among its options in /etc/fstab"
	root := point == "/"
	switch {
	case f.mount.FSType == "xfs" && root:
		e.Reason = "it is the root file system, and mounted without the option prjquota, which XFS takes only when it is mounted"
		e.Remedy = "boot with rootflags=prjquota on the kernel's command line: with GRUB, sed -i 's/^GRUB_CMDLINE_LINUX=\"/&rootflags=prjquota /' /etc/default/grub && update-grub && reboot"
	case f.mount.FSType == "xfs" && counts:
		e.Reason = "XFS counts what projects store there, but enforces no quota (option pqnoenforce)"
		e.Remedy = "xfs_quota -x -c 'enable -p' " + point
	case f.mount.FSType == "xfs":
		e.Reason = "it is mounted without the option prjquota, which XFS takes only when it is mounted (a remount does not do)"
		e.Remedy = unmount + " && " + remount + later
	case counts && root:
		e.Reason = "ext4 counts what projects store there, and is mounted without the option prjquota"
		e.Remedy = "quotaon -P / (package quota; until the next boot), and boot with rootflags=prjquota on the kernel's command line"
	case counts:
		e.Reason = "ext4 counts what projects store there, and is mounted without the option prjquota"
		e.Remedy = "quotaon -P " + point + " (package quota; until the next mount)" + later
	case root:
		e.Reason = "its ext4 lacks the features quota and project, which can be added while it is not mounted"
		e.Remedy = fmt.Sprintf("boot from elsewhere (a rescue system, or the initramfs with break=premount), there: e2fsck -f %s; tune2fs -O project -Q prjquota %s; then boot with rootflags=prjquota on the kernel's command line", node, node)
	default:
		e.Reason = "its ext4 lacks the features quota and project, which can be added while it is not mounted"
		e.Remedy = fmt.Sprintf("%s && { e2fsck -f -p %s || [ $? = 1 ]; } && tune2fs -O project -Q prjquota %s && %s", unmount, node, node, remount) + later +
			"; if the mount is refused, the kernel's module quota_v2 is missing (modprobe quota_v2)"
	}
	return e
}

// mountings is where all of the file system is mounted, and the command that ends all its
// mounts here, bind mounts before that. Both are spelled for a shell.
func (f *fileSystem) mountings() (point, unmount string) {
	point = f.mount.Point
	for _, m := range f.all {
		if m.Root == "/" {
			point = m.Point
			break
		}
	}
	for _, m := range slices.Backward(f.all) {
		if m.Point != point {
			unmount += " " + cmdline.Quote(m.Point)
		}
	}
	point = cmdline.Quote(point)
	return point, "umount" + unmount + " " + point
}

// A top is the topmost directory of a tree, open.
type top struct {
	*os.File
	Tree
	attr attr
}

// openTop opens a directory by the path that it has.
func openTop(dir string) (*top, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("quota on %s: %w", dir, err)
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ENOTDIR) {
		return nil, &SpecError{dir + " is a file; a quota is on a directory and all that is below it"}
	}
	if err != nil {
		return nil, fmt.Errorf("quota on %s: %w", dir, err)
	}
	t := &top{File: os.NewFile(uintptr(fd), path), Tree: Tree{Path: path}}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.Inode = st.Ino
	return t, nil
}
