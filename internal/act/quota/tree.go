package quota

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Marked is what became of a tree.
type Marked struct {
	Files   int `json:"files"`   // files and directories that have the project, or have it no more
	Foreign int `json:"foreign"` // that are another project's, and were left alone with all below them
	// Unable is how many files were left alone because the kernel does not mark them: symbolic
	// links and special files (on XFS it does from Linux 6.17 on), and immutable files on ext4.
	// Files made later inherit the project anyway.
	Unable int `json:"unable"`
}

func (m *Marked) add(n Marked) {
	m.Files, m.Foreign, m.Unable = m.Files+n.Files, m.Foreign+n.Foreign, m.Unable+n.Unable
}

// A walk goes through a tree without leaving its file system or following a link.
type walk struct {
	ctx      context.Context
	kernel   kernel
	bare     bool // its directories are alone
	progress func(files int)
	seen     int
	depth    int
}

// each counts an entry, and ends the walk when its time is over.
func (w *walk) each() error {
	if w.seen++; w.seen%512 != 0 {
		return nil
	}
	w.progress(w.seen)
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return nil
}

// names are read so many at a time.
const namesAtOnce = 1024

// entries calls visit for each name in an open directory. It skips one that is removed
// meanwhile.
func entries(dir *os.File, visit func(e fs.DirEntry) error) error {
	for {
		some, err := dir.ReadDir(namesAtOnce)
		for _, e := range some {
			if err := visit(e); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// alone returns a directory on a mount of its own, without other mounts below it, and where
// device files cannot be opened: otherwise somebody who may write to the tree could replace a
// file by a device. Before Linux 5.12, and where that is not allowed, it returns the directory
// itself, and bare is false.
func alone(dir *os.File) (own *os.File, bare bool, err error) {
	fd, err := unix.OpenTree(int(dir.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err == nil {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV})
		if err != nil {
			_ = unix.Close(fd) // it was only made
		} else if fd, err = reopened(fd); err == nil {
			return os.NewFile(uintptr(fd), dir.Name()), true, nil
		}
	}
	if fd, err = unix.Openat(int(dir.Fd()), ".", toRead|unix.O_DIRECTORY, 0); err != nil {
		return nil, false, &os.PathError{Op: "open", Path: dir.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), dir.Name()), false, nil
}

// reopened opens for reading what a descriptor only stands for.
func reopened(path int) (int, error) {
	fd, err := unix.Openat(path, ".", toRead|unix.O_DIRECTORY, 0)
	return fd, errors.Join(err, unix.Close(path))
}

// toRead opens without waiting, and only the file with that name.
const toRead = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC

// within keeps openat2(2) in the directory and on its mount.
const within = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// open opens an entry of a directory. A mount there is not part of the tree: fs.ErrNotExist.
func open(dir *os.File, name string, flags uint64) (int, error) {
	for {
		fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{Flags: flags | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: within})
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR): // something was renamed meanwhile
			continue
		case errors.Is(err, unix.EXDEV):
			return -1, fs.ErrNotExist
		}
		return fd, err
	}
}

func openDir(dir *os.File, name string) (*os.File, error) {
	fd, err := open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: below(dir.Name(), name), Err: err}
	}
	return os.NewFile(uintptr(fd), below(dir.Name(), name)), nil
}

// openFile opens a regular file; fd is -1 for any other file.
func (w *walk) openFile(dir *os.File, name string) (fd int, err error) {
	if w.bare {
		fd, err := openAt(int(dir.Fd()), name, toRead)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EAGAIN) {
			return -1, nil // a device, a link or a socket by now; or somebody has a lease on it
		}
		return fd, err
	}
	path, err := open(dir, name, unix.O_PATH)
	if err != nil {
		return -1, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if err := unix.Fstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1, err
	}
	fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EAGAIN) {
		return -1, nil
	}
	return fd, err
}

// mark marks a directory and everything below it. It marks the directory first, so that files
// made in it meanwhile inherit the project and appear when its names are read.
func (w *walk) mark(dir *folder, m marker) (Marked, error) {
	what, err := m.mark(int(dir.Fd()), true)
	var all Marked
	switch {
	case errors.Is(err, unix.EPERM): // immutable, on ext4; what is in it may not be
		all.Unable = 1
	case err != nil:
		return all, &os.PathError{Op: "mark", Path: dir.Name(), Err: err}
	case what == foreign:
		return Marked{Foreign: 1}, nil
	default:
		all.Files = 1
	}
	var dirs []string // after the files: those that are not marked cannot be renamed meanwhile
	err = entries(dir.File, func(e fs.DirEntry) error {
		if err := w.each(); err != nil {
			return err
		}
		if e.IsDir() {
			dirs = append(dirs, e.Name())
			return nil
		}
		one, err := w.markEntry(dir.File, e, m)
		all.add(one)
		return err
	})
	if err != nil {
		return all, err
	}
	for _, name := range dirs {
		err := w.into(dir, name, func(below *folder) error {
			one, err := w.mark(below, m)
			all.add(one)
			return err
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func (w *walk) markEntry(dir *os.File, e fs.DirEntry, m marker) (Marked, error) {
	what, err := w.markFile(dir, e, m)
	if err != nil {
		return Marked{}, &os.PathError{Op: "mark", Path: below(dir.Name(), e.Name()), Err: err}
	}
	switch what {
	case foreign:
		return Marked{Foreign: 1}, nil
	case unable:
		return Marked{Unable: 1}, nil
	}
	return Marked{Files: 1}, nil
}

// markFile marks a file that is not a directory. The kernel refuses immutable files (on ext4).
func (w *walk) markFile(dir *os.File, e fs.DirEntry, m marker) (outcome, error) {
	var what outcome
	var err error
	switch {
	case m.byName && w.bare:
		what, err = m.markName(dir, e.Name())
	case e.Type().IsRegular():
		what, err = w.markOpened(dir, e.Name(), m)
	default:
		return unable, nil
	}
	if errors.Is(err, unix.EPERM) {
		return unable, nil
	}
	return what, err
}

func (w *walk) markOpened(dir *os.File, name string, m marker) (outcome, error) {
	fd, err := w.openFile(dir, name)
	if err != nil || fd < 0 {
		return unable, err
	}
	what, err := m.mark(fd, false)
	return what, errors.Join(err, closeFD(fd))
}

// measure adds up what a tree takes, as du(1) does, each file once. Directories of another
// project are left out.
func (w *walk) measure(dir *folder, project uint32, links map[uint64]bool) (Usage, error) {
	a, err := attrOf(w.kernel, dir.File)
	if err != nil || a.project != 0 && a.project != project {
		return Usage{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return Usage{}, &os.PathError{Op: "stat", Path: dir.Name(), Err: err}
	}
	all := Usage{Bytes: uint64(st.Blocks) * sector, Files: 1}
	var dirs []string // later: a directory that is being read stays open
	err = entries(dir.File, func(e fs.DirEntry) error {
		if err := w.each(); err != nil {
			return err
		}
		if e.IsDir() {
			dirs = append(dirs, e.Name())
			return nil
		}
		var st unix.Statx_t
		if err := statAt(int(dir.Fd()), e.Name(), &st); err != nil {
			return &os.PathError{Op: "stat", Path: below(dir.Name(), e.Name()), Err: err}
		}
		if st.Nlink > 1 {
			if links[st.Ino] {
				return nil
			}
			links[st.Ino] = true
		}
		all.Bytes, all.Files = all.Bytes+st.Blocks*sector, all.Files+1
		return nil
	})
	if err != nil {
		return all, err
	}
	for _, name := range dirs {
		err := w.into(dir, name, func(below *folder) error {
			u, err := w.measure(below, project, links)
			all.Bytes, all.Files = all.Bytes+u.Bytes, all.Files+u.Files
			return err
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
