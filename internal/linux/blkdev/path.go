package blkdev

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A file is what stat says, as far as it is needed here.
type file struct {
	mode    uint32
	dev     Number // of the file system; anonymous for btrfs, overlay …
	rdev    Number // of a device node
	mountID int    // 0 where the kernel does not say (before 5.8)
}

func (f file) isBlock() bool { return f.mode&unix.S_IFMT == unix.S_IFBLK }
func (f file) isChar() bool  { return f.mode&unix.S_IFMT == unix.S_IFCHR }
func (f file) isDir() bool   { return f.mode&unix.S_IFMT == unix.S_IFDIR }

// stat asks for the mount in the same call. Seccomp filters of old container
// runtimes answer statx with EPERM, kernels before 4.11 with ENOSYS.
func stat(p string) (file, error) {
	var x unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, p, 0, unix.STATX_TYPE|unix.STATX_MNT_ID, &x)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return oldStat(p)
	}
	if err != nil {
		return file{}, err
	}
	f := file{
		mode: uint32(x.Mode),
		dev:  Number{Major: x.Dev_major, Minor: x.Dev_minor},
		rdev: Number{Major: x.Rdev_major, Minor: x.Rdev_minor},
	}
	if x.Mask&unix.STATX_MNT_ID != 0 {
		f.mountID = int(x.Mnt_id)
	}
	return f, nil
}

func oldStat(p string) (file, error) {
	var s unix.Stat_t
	if err := unix.Stat(p, &s); err != nil {
		return file{}, err
	}
	return file{mode: uint32(s.Mode), dev: numberOf(uint64(s.Dev)), rdev: numberOf(uint64(s.Rdev))}, nil
}

func numberOf(dev uint64) Number { return Number{Major: unix.Major(dev), Minor: unix.Minor(dev)} }

// onPath goes on from a path: a device node ends the chain, anything else is on a mount.
func (r *resolver) onPath(ctx context.Context, c *Chain, p string, depth int) error {
	if depth <= 0 {
		return fmt.Errorf("resolve %s: more than %d file systems on top of each other", c.Spec, maxDepth)
	}
	real, f, err := r.look(p)
	switch {
	case r.meansNode(p, real, f, err):
		return r.onNode(ctx, c, p)
	case err != nil && isNotExist(err):
		return r.noSuchPath(c.Spec, p)
	case err != nil:
		return fmt.Errorf("resolve %s: %w", c.Spec, err)
	}
	m, err := r.mountOf(p, real, f)
	if err != nil {
		return r.outside(ctx, c, f, err, depth)
	}
	return r.onMount(ctx, c, m, depth)
}

// meansNode reports whether a path stands for a device and not for the mount it is on:
// it is a node, or it is below /dev and missing, or it is below the /dev of another
// root, where nodes can be plain files or links to nothing.
func (r *resolver) meansNode(p, real string, f file, err error) bool {
	if err == nil && (f.isBlock() || f.isChar()) {
		return true
	}
	if err != nil {
		return isNotExist(err) && (within(filepath.Clean(p), "/dev") || within(real, "/dev"))
	}
	return !r.fs.isHost() && within(real, "/dev") && !f.isDir()
}

// look stats a path. Below another root it follows the path inside that root, and real is where
// it leads; on the host the kernel follows it, and real is empty.
func (r *resolver) look(p string) (real string, f file, err error) {
	if r.fs.isHost() {
		f, err = stat(p)
		return "", f, err
	}
	if real, err = r.fs.real(p); err != nil {
		return real, f, err
	}
	f, err = stat(r.fs.at(real))
	return real, f, err
}

// noSuchPath says how far a path exists.
func (r *resolver) noSuchPath(spec, p string) error {
	e := &NotFoundError{Spec: spec, Reason: "no such file or directory"}
	if p != spec {
		e.Reason = p + ": " + e.Reason
	}
	for dir := filepath.Dir(p); ; dir = filepath.Dir(dir) {
		if _, _, err := r.look(dir); err == nil {
			if dir != "/" && dir != "." {
				e.Reason += "; of it, " + dir + " exists"
			}
			return e
		}
		if dir == filepath.Dir(dir) {
			return e
		}
	}
}

// there reports whether a path can be looked at.
func (r *resolver) there(p string) bool {
	_, _, err := r.look(p)
	return err == nil
}

var errNoMount = errors.New("its mount is not in mountinfo")

// mountOf finds the mount of a path: by the number that statx gave, or else by the
// path itself.
func (r *resolver) mountOf(p, real string, f file) (Mount, error) {
	if r.fs.isHost() && f.mountID != 0 {
		return r.mountByID(p, f.mountID)
	}
	if real == "" {
		abs, err := filepath.Abs(p)
		if err != nil {
			return Mount{}, err
		}
		if real, err = filepath.EvalSymlinks(abs); err != nil {
			return Mount{}, err
		}
	}
	mounts, err := r.ownMounts()
	if err != nil {
		return Mount{}, err
	}
	m, ok := covering(mounts, real)
	if ok && r.fs.isHost() && f.dev.Major != 0 && m.Number != f.dev {
		// The mounts changed in between, or some are not shown: the number is right.
		m, ok = longest(slices.DeleteFunc(slices.Clone(mounts), func(m Mount) bool { return m.Number != f.dev }), real)
	}
	if !ok {
		return Mount{}, errNoMount
	}
	return m, nil
}

// mountByID searches the mounts of this process, and for a path through /proc/PID/root those of
// that process.
func (r *resolver) mountByID(p string, id int) (Mount, error) {
	same := func(m Mount) (want, stop bool) { return m.ID == id, m.ID == id }
	for _, pid := range []int{0, pidOf(p)} {
		if r.ownKnown && pid == 0 {
			for _, m := range r.own {
				if m.ID == id {
					return m, nil
				}
			}
			continue
		}
		found, left, err := r.fs.mountsLeft(pid, same)
		if err != nil {
			return Mount{}, err
		}
		if len(found) > 0 {
			return found[0], nil
		}
		if left.Lines > 0 {
			return Mount{}, fmt.Errorf("%w: of %s %s", errNoMount, r.fs.mountFile(pid), left)
		}
		if pidOf(p) == 0 {
			break
		}
	}
	return Mount{}, errNoMount
}

// pidOf reads PID from /proc/PID/root/… and /proc/PID/cwd/…, and is 0 for other paths.
func pidOf(p string) int {
	rest, ok := strings.CutPrefix(filepath.Clean(p), "/proc/")
	if !ok {
		return 0
	}
	pid, rest, _ := strings.Cut(rest, "/")
	link, _, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 0 || (link != "root" && link != "cwd") {
		return 0
	}
	return n
}

func (r *resolver) ownMounts() ([]Mount, error) {
	if r.ownKnown {
		return r.own, nil
	}
	mounts, err := r.fs.mounts(0, all)
	if err == nil {
		r.own, r.ownKnown = mounts, true
	}
	return mounts, err
}

// outside uses the device number of a file whose mount cannot be seen from here (a chroot,
// another namespace, an unmounted directory still in use).
func (r *resolver) outside(ctx context.Context, c *Chain, f file, cause error, depth int) error {
	if !errors.Is(cause, errNoMount) || f.dev.Major == 0 || !r.fs.isHost() {
		return fmt.Errorf("resolve %s: %w", c.Spec, cause)
	}
	d, err := r.device(ctx, c, f.dev, depth)
	if err != nil {
		return err
	}
	c.note("weir cannot see the mount of %s (%v), and knows its device only by number", c.Spec, cause)
	c.end(FSLayer, "a file system on ", []Device{d})
	return nil
}

// node reads the device of a node, or of a link to one. Where the node is missing
// (a container, a fixture) its name is looked up in sysfs.
func (r *resolver) node(ctx context.Context, c *Chain, p string, depth int) (Device, error) {
	real, f, err := r.look(p)
	switch {
	case err == nil && f.isBlock():
		return r.device(ctx, c, f.rdev, depth)
	case err == nil && f.isChar():
		return Device{}, notBlock(p)
	case err != nil && !isNotExist(err):
		return Device{}, fmt.Errorf("resolve %s: %w", c.Spec, err)
	case err == nil && r.fs.isHost():
		return Device{}, &NotBlockError{Path: p, What: "a file or directory"}
	}
	if real == "" {
		if real, err = r.fs.real(p); err != nil && !isNotExist(err) {
			return Device{}, fmt.Errorf("resolve %s: %w", c.Spec, err)
		}
	}
	name, ok := strings.CutPrefix(real, "/dev/")
	if !ok {
		return Device{}, r.noSuchPath(c.Spec, p)
	}
	d, err := r.named(ctx, c, name, depth)
	if err != nil && isNotExist(err) {
		return Device{}, r.fs.notFoundNode(c.Spec, p)
	}
	if err == nil && r.fs.isHost() {
		c.note("there is no node %s; sysfs knows the device by this name", p)
	}
	return d, err
}

func notBlock(p string) error {
	e := &NotBlockError{Path: p, What: "a character device"}
	if n, ok := strings.CutPrefix(filepath.Base(p), "nvme"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
		e.Hint = "that is the controller; its disks are called " + p + "n1 and so on"
	}
	return e
}
