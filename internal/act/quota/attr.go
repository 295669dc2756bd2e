package quota

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ioctls of include/uapi/linux/fs.h, and the flag of a directory whose project what is made
// in it inherits.
const (
	fsGetXattr  = 0x801c581f // FS_IOC_FSGETXATTR
	fsSetXattr  = 0x401c5820 // FS_IOC_FSSETXATTR
	projInherit = 0x200      // FS_XFLAG_PROJINHERIT
)

// fsxattr is struct fsxattr.
type fsxattr struct {
	xflags, extsize, nextents, project, cowextsize uint32
	_                                              [8]byte
}

// fileAttr is struct file_attr of file_getattr(2) and file_setattr(2), Linux 6.17.
type fileAttr struct {
	xflags                                 uint64
	extsize, nextents, project, cowextsize uint32
}

// attr is what both have of a file that matters here.
type attr struct {
	project uint32
	inherit bool
}

// attrOf reads an open file's.
func attrOf(k kernel, f *os.File) (attr, error) {
	x, err := k.xattr(int(f.Fd()))
	if err != nil {
		return attr{}, &os.PathError{Op: "read the project of", Path: f.Name(), Err: err}
	}
	return attr{x.project, x.xflags&projInherit != 0}, nil
}

// A marker gives files a project, or takes it from them.
type marker struct {
	kernel  kernel
	project uint32
	off     bool
	byName  bool // file_setattr is there, which takes files that cannot be opened too
}

// newMarker asks the kernel which calls it has.
func newMarker(k kernel, project uint32, off bool) marker {
	_, err := k.attr(unix.AT_FDCWD, "/")
	return marker{k, project, off, !errors.Is(err, unix.ENOSYS)}
}

// change returns the new project and flags of a file; different is false if it has them
// already. A project that is neither the marker's nor none belongs to somebody else.
func (m marker) change(project uint32, flags uint64, dir bool) (newProject uint32, newFlags uint64, different, foreign bool) {
	newProject, newFlags = m.project, flags
	switch {
	case m.off && project != m.project, !m.off && project != 0 && project != m.project:
		return project, flags, false, project != 0
	case m.off:
		newProject = 0
		if dir {
			newFlags &^= projInherit
		}
	case dir:
		newFlags |= projInherit
	}
	return newProject, newFlags, newProject != project || newFlags != flags, false
}

// What became of a file.
type outcome int

const (
	marked  outcome = iota
	foreign         // it has another project
	unable          // the kernel marks no such file: a symbolic link or a device, before Linux 6.17
)

// mark marks an open file or directory.
func (m marker) mark(fd int, dir bool) (outcome, error) {
	x, err := m.kernel.xattr(fd)
	if err != nil {
		return unable, err
	}
	project, flags, different, isForeign := m.change(x.project, uint64(x.xflags), dir)
	if isForeign {
		return foreign, nil
	}
	if !different {
		return marked, nil
	}
	x.project, x.xflags = project, uint32(flags)
	return marked, m.kernel.setXattr(fd, x)
}

// markName marks what a directory has by a name, without opening it.
func (m marker) markName(dir *os.File, name string) (outcome, error) {
	a, err := m.kernel.attr(int(dir.Fd()), name)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
		return unable, nil
	}
	if err != nil {
		return unable, err
	}
	project, flags, different, isForeign := m.change(a.project, a.xflags, false)
	if isForeign {
		return foreign, nil
	}
	if !different {
		return marked, nil
	}
	a.project, a.xflags = project, flags
	err = m.kernel.setAttr(int(dir.Fd()), name, a)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
		return unable, nil
	}
	return marked, err
}
