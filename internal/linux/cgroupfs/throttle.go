package cgroupfs

import (
	"path"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// throttleLooks bounds how many groups are checked for the controller's files.
const throttleLooks = 64

// NoThrottle returns a *fault.Unsupported if the kernel has no limits on disk I/O
// (CONFIG_BLK_DEV_THROTTLING), and the file that is missing. It infers that from a group that
// has the controller's other files (CONFIG_BLK_CGROUP): this group, one above it, or another
// one. If no group has any of these files, the error is nil.
func (g Group) NoThrottle() (missing string, err error) {
	if g.h.Version == V1 {
		return g.h.Root().withoutThrottle("blkio.reset_stats", filesV1[0])
	}
	above := g.ancestors()
	looks := append([]Group{g}, above[min(1, len(above)):]...)
	children, err := g.h.Root().Children()
	if err != nil && !IsGone(err) {
		return "", err
	}
	looks = append(looks, children...)
	for _, at := range looks[:min(len(looks), throttleLooks)] {
		if at.IsRoot() || !at.there("io.stat") {
			continue // the root has io.stat, and never io.max
		}
		return at.withoutThrottle("io.stat", fileV2)
	}
	return "", nil
}

// withoutThrottle returns that error if a group has one file and not the other.
func (g Group) withoutThrottle(has, missing string) (string, error) {
	if !g.there(has) || g.there(missing) {
		return "", nil
	}
	return g.File(missing), &fault.Unsupported{Feature: "limit disk I/O",
		Reason: "the kernel was built without limits on disk I/O: " + g.Dir() + " has " + has + " and no " + missing,
		Remedy: "boot a kernel that was built with CONFIG_BLK_DEV_THROTTLING"}
}

// LacksIO reports that a group of v2 is there without the io controller. Of the root group, which never has a
// limit, it is false.
func (g Group) LacksIO() bool {
	return g.h.Version == V2 && !g.IsRoot() && !g.there("io.stat") && !g.there(fileV2) && g.there("cgroup.procs")
}

// there reports whether a file may be in the group; false only if it is known not to be. It
// does not read the file, which would make the kernel add up counters.
func (g Group) there(name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(g.h.dir, path.Join(g.path, name), &st, unix.AT_SYMLINK_NOFOLLOW) != unix.ENOENT
}
