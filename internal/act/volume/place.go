package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// openPlain opens a path without any symbolic link in it, so that nobody can lead root
// elsewhere.
func openPlain(path string, flags uint64) (*os.File, error) {
	return openPlainAt(unix.AT_FDCWD, path, path, flags)
}

// openPlainAt is openPlain below a directory; name is the path for people.
func openPlainAt(dir int, path, name string, flags uint64) (*os.File, error) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openParent opens the directory that a path's last element is in.
func openParent(path string) (*os.File, error) {
	return openPlain(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY)
}

// below names an entry of an open directory, for calls that take only paths. Renaming the
// directory, or putting a link in its place, does not change what the name means.
func below(dir *os.File, path string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
}

// makeDir makes a directory and those above it, none of them through a symbolic link.
func makeDir(path string) error {
	at, err := openPlain("/", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue
		}
		if err = unix.Mkdirat(int(at.Fd()), name, 0o755); errors.Is(err, unix.EEXIST) {
			err = nil
		}
		next := at
		if err == nil {
			next, err = openPlainAt(int(at.Fd()), name, path, unix.O_PATH|unix.O_DIRECTORY)
		}
		_ = at.Close() // nothing was written
		if err != nil {
			return fmt.Errorf("create the mount point %s: %w", path, err)
		}
		at = next
	}
	return at.Close()
}

// isEmpty reports whether a directory is empty. If it does not exist, the error is
// fs.ErrNotExist.
func isEmpty(path string) (bool, error) {
	dir, err := openPlain(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.ReadDir(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names) == 0, err
}

// rootsAlone refuses a directory in which, or on the way to which, others than root can
// rename: they could put another file where a volume's is.
func rootsAlone(dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return &os.PathError{Op: "stat", Path: at, Err: err}
		}
		switch {
		case st.Mode&unix.S_IFMT != unix.S_IFDIR:
			return fmt.Errorf("%s is no directory", at)
		case st.Uid != 0:
			return fault.With(fmt.Errorf("%s does not belong to root: its owner could replace the volume's file", at), fault.Remedy{Do: fault.NameOtherPlace})
		case st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
			return fault.With(fmt.Errorf("others than root may write to %s, and could replace the volume's file", at), fault.Remedy{Do: fault.NameOtherPlace})
		}
		if at == "/" {
			return nil
		}
	}
}

// removeDir removes the mount point, if weir made it and nothing is in it.
func removeDir(v Volume) error {
	if !v.MadeMount {
		return nil
	}
	parent, err := openParent(v.Mount)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer parent.Close()
		err = unix.Unlinkat(int(parent.Fd()), filepath.Base(v.Mount), unix.AT_REMOVEDIR)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("remove %s: %w", v.Mount, err)
	}
	return nil
}
