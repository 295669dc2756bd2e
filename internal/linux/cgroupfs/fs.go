package cgroupfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/mountinfo"
)

// A Version is a generation of the cgroup interface: 1 or 2.
type Version int

// The two generations.
const (
	V1 Version = 1
	V2 Version = 2
)

func (v Version) String() string { return fmt.Sprintf("v%d", int(v)) }

// A FS is the set of cgroup hierarchies mounted on a host.
type FS struct {
	root    string
	fixture bool
	all     []*Hierarchy
	left    []error // of mounts that cannot be used
}

// A Hierarchy is one mounted cgroup tree.
type Hierarchy struct {
	Version     Version
	MountPoint  string   // where it is mounted, as the reader's mountinfo has it
	MountRoot   string   // the group that is mounted there, "/" for the whole tree
	Controllers []string // the controllers that its groups can use

	host string // MountPoint below the FS's root
	dir  int    // descriptor of the mount point, O_PATH
	ro   bool   // mounted read-only
	fake bool   // a tree of plain files: read, never written

	stand Kernel // takes what would be written to a tree of plain files; nil: nothing is written
	// groups does the kernel's part in a tree of plain files.
	groups Groups
}

// Open finds the cgroup hierarchies of the host below root, which is "/" or a
// directory that holds the proc and sys of another one. Below a root other than
// "/", proc/1 stands for the host's view. A root whose proc is not a proc file
// system is a fixture: it can be read and is never written.
func Open(root string) (*FS, error) {
	fs := &FS{root: root}
	process := "self"
	if root != "/" {
		process = "1"
		fs.fixture = !isFilesystem(filepath.Join(root, "proc"), unix.PROC_SUPER_MAGIC)
	}
	open := unwatched
	if fs.fixture {
		open = peek.Open // a copy can have a FIFO there
	}
	f, err := open(filepath.Join(root, "proc", process, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("find cgroup hierarchies: %w", err)
	}
	defer f.Close()
	left, err := mountinfo.Read(f, func(m mountinfo.Info) (stop bool) {
		if m.FSType == "cgroup" || m.FSType == "cgroup2" {
			if err := fs.add(m); err != nil {
				fs.leave(err)
			}
		}
		return false
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find cgroup hierarchies: %w", err), fs.Close())
	}
	if left.Lines > 0 {
		fs.leave(fmt.Errorf("%s: %s", f.Name(), left))
	}
	if len(fs.all) == 0 && len(fs.left) > 0 {
		return nil, fmt.Errorf("find cgroup hierarchies: %w", errors.Join(fs.left...))
	}
	return fs, nil
}

// unwatched opens a file as os.Open does, but that would have epoll(7) watch it: mountinfo tells of
// mounts by that, which nobody asks here.
func unwatched(name string) (*os.File, error) {
	for {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), name), nil
		case unix.EINTR:
		default:
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// leftMost bounds the mounts that are named when no hierarchy is found.
const leftMost = 4

func (fs *FS) leave(why error) {
	if len(fs.left) < leftMost {
		fs.left = append(fs.left, why)
	}
}

// Close releases the descriptors of the hierarchies.
func (fs *FS) Close() error {
	var errs []error
	for _, h := range fs.all {
		errs = append(errs, unix.Close(h.dir))
	}
	fs.all = nil
	return errors.Join(errs...)
}

// Hierarchies lists the hierarchies that can be used.
func (fs *FS) Hierarchies() []*Hierarchy { return fs.all }

// Root returns the directory that the file system was opened below.
func (fs *FS) Root() string { return fs.root }

// add opens one mount. It leaves out, without an error, a mount that is hidden behind another
// one or that the caller may not enter, because its path does not reach it. It also leaves out
// a mount of a single file of a group.
func (fs *FS) add(m mountinfo.Info) error {
	if isOutside(m.Root) { // a container that has mounted its host's groups: their paths are not to be known
		return outside("use cgroup hierarchy "+m.Point, "its root, "+m.Root+",")
	}
	h := &Hierarchy{Version: V1, MountPoint: m.Point, MountRoot: m.Root, fake: fs.fixture,
		host: filepath.Join(fs.root, m.Point), ro: hasOption(m.Options, "ro") || hasOption(m.SuperOptions, "ro")}
	magic := int64(unix.CGROUP_SUPER_MAGIC)
	if m.FSType == "cgroup2" {
		h.Version, magic = V2, unix.CGROUP2_SUPER_MAGIC
	}
	dir, err := unix.Open(h.host, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open cgroup hierarchy %s: %w", h.host, err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(dir, &st); !fs.fixture && (err != nil || int64(st.Type) != magic) {
		return unix.Close(dir)
	}
	h.dir = dir
	if h.Version == V2 {
		text, err := h.read("cgroup.controllers")
		if err != nil { // ENODEV: the group that is mounted here was removed
			return errors.Join(err, unix.Close(dir))
		}
		h.Controllers = strings.Fields(text)
	} else {
		h.Controllers = strings.Split(m.SuperOptions, ",")
	}
	fs.all = append(fs.all, h)
	return nil
}

func hasOption(options, name string) bool { return slices.Contains(strings.Split(options, ","), name) }

func isFilesystem(path string, magic int64) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && int64(st.Type) == magic
}

// Has reports whether the hierarchy's groups can use a controller.
func (h *Hierarchy) Has(controller string) bool { return slices.Contains(h.Controllers, controller) }

// With returns the hierarchy that has a controller, or nil. If a hierarchy is mounted twice, it
// returns the mount of the whole tree, and of two such mounts the one that can be written.
func (fs *FS) With(controller string) *Hierarchy {
	return fs.pick(func(h *Hierarchy) bool { return h.Has(controller) })
}

// Unified returns the v2 hierarchy, whatever controllers it has, or nil.
func (fs *FS) Unified() *Hierarchy {
	return fs.pick(func(h *Hierarchy) bool { return h.Version == V2 })
}

func (fs *FS) pick(ok func(*Hierarchy) bool) *Hierarchy {
	var found *Hierarchy
	for _, h := range fs.all {
		if ok(h) && (found == nil || h.worth() > found.worth()) {
			found = h
		}
	}
	return found
}

// worth orders the mounts of one hierarchy by what can be reached through them.
func (h *Hierarchy) worth() (points int) {
	if h.MountRoot == "/" {
		points = 2
	}
	if !h.ro {
		points++
	}
	return points
}

// IO returns the hierarchy whose groups can limit disk I/O: the one with v2's io
// controller, or v1's blkio. want asks for one version; 0 takes either. The error
// wraps a *fault.Unsupported.
func (fs *FS) IO(want Version) (*Hierarchy, error) {
	v1, v2 := fs.With("blkio"), fs.With("io")
	switch {
	case want != V1 && v2 != nil:
		return v2, nil
	case want != V2 && v1 != nil:
		return v1, nil
	}
	e := &fault.Unsupported{Feature: "limit disk I/O"}
	if want != 0 {
		e.Feature += " with cgroup " + want.String()
	}
	other := fault.Remedy{} // ask for the version that there is
	switch {
	case want == V2 && v1 != nil:
		e.Reason, other.Do = "cgroup v1 has the controller on this host (blkio, at "+v1.MountPoint+")", fault.UseV1
	case want == V1 && v2 != nil:
		e.Reason, other.Do = "cgroup v2 has the controller on this host (io, at "+v2.MountPoint+")", fault.UseV2
	default:
		e.Reason, e.Remedy = fs.whyNoIO()
	}
	for _, why := range fs.left {
		e.Reason += " (left out: " + plain.Brief(why.Error()) + ")"
	}
	if other.Do != "" {
		return nil, fault.With(e, other)
	}
	return nil, e
}

// remedyBlkio mounts the v1 controller if cgroup2 does not have it.
const remedyBlkio = "mkdir -p /run/blkio && mount -t cgroup -o blkio none /run/blkio"

// whyNoIO says why no hierarchy has a controller of disk I/O.
func (fs *FS) whyNoIO() (reason, remedy string) {
	unified := fs.Unified()
	switch {
	case unified != nil && fs.kernelHas("blkio"):
		return "the io controller is not in " + unified.MountPoint + "/cgroup.controllers, and blkio is mounted nowhere",
			"in a container, run weir on the host; on a host, " + remedyBlkio
	case fs.kernelHas("blkio"):
		return "no cgroup hierarchy with io or blkio is mounted", "mount -t cgroup2 none /sys/fs/cgroup, or " + remedyBlkio
	default:
		return "the kernel has no blkio controller", "it needs CONFIG_BLK_CGROUP and CONFIG_BLK_DEV_THROTTLING"
	}
}

// kernelHas looks a v1 name up in /proc/cgroups, which lists what the kernel has
// whether it is mounted or not. A host without that file has no cgroups.
func (fs *FS) kernelHas(controller string) bool {
	text, err := os.ReadFile(filepath.Join(fs.root, "proc/cgroups"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 4 && fields[0] == controller {
			return fields[3] == "1"
		}
	}
	return false
}

// Writable reports why nobody can write to the hierarchy: it is mounted read-only, or it
// belongs to a fixture. Nil means that somebody can; see Group.MayMake and Group.MaySetRule for
// the caller's own rights.
func (h *Hierarchy) Writable() error {
	switch {
	case h.ro:
		return &fault.Unsupported{Feature: "write to " + h.host, Reason: "it is mounted read-only",
			Remedy: "in a container, run weir on the host, or give the container its cgroup file system writable; on a host, mount -o remount,rw " + h.MountPoint}
	case h.fake && h.stand == nil:
		return fault.With(&fault.Unsupported{Feature: "write to " + h.host, Reason: "it is a copy, not the kernel's cgroup file system"}, fault.Remedy{Do: fault.ShowOnly})
	}
	return nil
}

var _ io.Closer = (*FS)(nil)
