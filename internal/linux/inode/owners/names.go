package owners

import (
	"encoding/binary"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// names finds the paths of groups by their numbers, in the v2 hierarchy. It lives as
// long as one question: numbers are not given twice, but groups come and go.
type names struct {
	h     *cgroupfs.Hierarchy // nil: there is none, and no path is known
	known map[uint64]string
}

// fileIDKernfs is the type of a file handle that holds nothing but a directory's
// number (FILEID_KERNFS, since 5.5).
const fileIDKernfs = 0xfe

func newNames(h *cgroupfs.Hierarchy) *names { return &names{h: h, known: map[uint64]string{}} }

// path returns the path of a group that is alive, or "".
func (n *names) path(id uint64) string {
	if n.h == nil || id == 0 {
		return ""
	}
	p, ok := n.known[id]
	if !ok {
		p = n.look(id)
		n.known[id] = p
	}
	return p
}

// below returns the path of a name in a group, or "" if that group is not alive.
func (n *names) below(id uint64, name string) string {
	parent := n.path(id)
	if parent == "" {
		return ""
	}
	return path.Join(parent, name)
}

// look opens the directory by its number and reads its name. A group that is dead, or outside
// of the mounted tree, has no name here.
func (n *names) look(id uint64) string {
	mount, err := unix.Open(n.h.MountPoint, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(mount)
	handle := unix.NewFileHandle(fileIDKernfs, binary.NativeEndian.AppendUint64(nil, id))
	fd, err := unix.OpenByHandleAt(mount, handle, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	dir, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return ""
	}
	rest, ok := strings.CutPrefix(dir, n.h.MountPoint)
	if !ok || rest != "" && rest[0] != '/' {
		return ""
	}
	return path.Join(n.h.MountRoot, "/", rest)
}

// GroupPath returns the path of a v2 group by its number, or "" if it is dead, or outside of
// the mounted tree.
func GroupPath(h *cgroupfs.Hierarchy, id uint64) string { return newNames(h).path(id) }
