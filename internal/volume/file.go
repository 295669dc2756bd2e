package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/durable"
)

// An identity tells one file from another that has its name later.
type identity struct {
	Inode uint64 `json:"inode"`
	Born  int64  `json:"born"` // ns; 0: the file system does not say
}

func identify(fd int) (identity, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return identity{}, err
	}
	id := identity{Inode: st.Ino}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id, nil
}

// openPlain opens what is at a path on which nothing is a symbolic link: nobody else leads
// root astray.
func openPlain(path string, flags uint64) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openImage opens a volume's file, which must be root's alone: whoever can write to it can
// have the kernel mount anything.
func openImage(v Volume) (*os.File, error) {
	image, err := openPlain(v.Image, unix.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w (is the disk that its file is on mounted?)", v.Name, err)
	}
	var st unix.Stat_t
	err = unix.Fstat(int(image.Fd()), &st)
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != 0 || st.Mode&0o022 != 0) {
		err = fmt.Errorf("%s is not a file that only root can write to", v.Image)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("volume %s: %w", v.Name, err), image.Close())
	}
	return image, nil
}

// errElsewhere means that the directory of a volume's file is another one than when it was
// made: its disk is not mounted.
var errElsewhere = errors.New("the disk that its file is on is not mounted")

// look finds out what is at the place of a volume's file.
func look(v Volume) (there, its bool, err error) {
	folder, err := folderOf(v.Image)
	if err != nil || folder != v.Folder {
		return false, false, errElsewhere
	}
	f, err := openPlain(v.Image, unix.O_PATH|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	id, err := identify(int(f.Fd()))
	return true, id == v.File, err
}

func folderOf(image string) (inode uint64, err error) {
	f, err := openPlain(filepath.Dir(image), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	id, err := identify(int(f.Fd()))
	return id.Inode, err
}

// link gives an image its name, which nothing else has.
func link(image *os.File, path string) error {
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", image.Fd()), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if err == nil {
		err = durable.Sync(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("name the volume's file %s: %w", path, err)
	}
	return nil
}

// removeImage removes the file of a volume, if that is the file it was made with.
func removeImage(v Volume) error {
	if v.Adopted() {
		return nil
	}
	there, its, err := look(v)
	if err == nil && there && its {
		if err = unix.Unlink(v.Image); err == nil {
			err = durable.Sync(filepath.Dir(v.Image))
		}
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", v.Image, err)
	}
	return nil
}

// removeDir removes the mount point, if weir made it and nothing is in it.
func removeDir(v Volume) error {
	if !v.MadeMount {
		return nil
	}
	if err := unix.Rmdir(v.Mount); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("remove %s: %w", v.Mount, err)
	}
	return nil
}
