package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/durable"
	"github.com/weir-io/weir/internal/fault"
)

// An identity tells one file from another that has its name later.
type identity struct {
	Inode      uint64 `json:"inode"`
	Born       int64  `json:"born"`                 // ns; 0: the file system does not say
	Generation uint32 `json:"generation,omitempty"` // how often the inode was used; 0: the file system does not say
}

// is reports whether a file is the one on record. Records of weirs before have no generation.
func (id identity) is(recorded identity) bool {
	if recorded.Generation == 0 {
		id.Generation = 0
	}
	return id == recorded
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
	if n, err := unix.IoctlGetUint32(fd, getVersion); err == nil { // not of an O_PATH descriptor
		id.Generation = n
	}
	return id, nil
}

// getVersion is FS_IOC_GETVERSION (include/uapi/linux/fs.h): ext4, XFS and btrfs answer it.
const getVersion = 0x80087601

// openImage opens a volume's file. Only root may be able to write to it, because whoever can
// write to it can make the kernel mount anything. It must be the file on record; another file
// in its place belongs to somebody else.
func openImage(v Volume) (*os.File, error) {
	image, err := openOwned(v)
	if err != nil {
		return nil, err
	}
	id, err := identify(int(image.Fd()))
	if err == nil && !id.is(v.File) {
		err = fault.With(&OtherFileError{v}, fault.Remedy{Do: fault.AcceptFile, Target: v.Name})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("volume %s: %w", v.Name, err), image.Close())
	}
	return image, nil
}

// An OtherFileError means that another file is where a volume's was.
type OtherFileError struct{ Volume Volume }

func (e *OtherFileError) Error() string {
	return e.Volume.Image + " is not the file that the volume was created with"
}

// acceptFile accepts the present file as a volume's own.
func acceptFile(v *Volume) error {
	if err := rootsAlone(filepath.Dir(v.Image)); err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	image, err := openOwned(*v)
	if err != nil {
		return err
	}
	defer image.Close()
	if v.File, err = identify(int(image.Fd())); err == nil {
		v.Folder, err = folderOf(v.Image)
	}
	return err
}

// openOwned opens the file at the place of a volume's file, if only root can write to it.
func openOwned(v Volume) (*os.File, error) {
	image, err := openPlain(v.Image, unix.O_RDWR)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w (is the disk that its file is on mounted?)", v.Name, err)
	}
	var st unix.Stat_t
	err = unix.Fstat(int(image.Fd()), &st)
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != 0 || st.Mode&0o022 != 0) {
		err = fmt.Errorf("%s is not a file that only root can write to; chown root and chmod 600 it, if it is the volume's own", v.Image)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("volume %s: %w", v.Name, err), image.Close())
	}
	return image, nil
}

// errElsewhere means that the directory of a volume's file is not the one that it was created
// in: its disk is not mounted.
var errElsewhere = errors.New("the disk that its file is on is not mounted")

// look finds out which file is at the place of a volume's file.
func look(v Volume) (there, its bool, err error) {
	folder, err := folderOf(v.Image)
	if err != nil || folder != v.Folder {
		return false, false, errElsewhere
	}
	return lookAt(unix.AT_FDCWD, v.Image, v)
}

// lookAt is look for a path below a directory.
func lookAt(dir int, path string, v Volume) (there, its bool, err error) {
	f, err := openPlainAt(dir, path, v.Image, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, false, nil
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return true, false, nil // a symbolic link, a socket
	}
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	id, err := identify(int(f.Fd()))
	return true, id.is(v.File), err
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
	parent, err := openParent(v.Image)
	if err != nil {
		return fmt.Errorf("remove %s: %w", v.Image, errElsewhere)
	}
	defer parent.Close()
	if id, err := identify(int(parent.Fd())); err != nil || id.Inode != v.Folder {
		return fmt.Errorf("remove %s: %w", v.Image, errors.Join(errElsewhere, err))
	}
	name := filepath.Base(v.Image)
	there, its, err := lookAt(int(parent.Fd()), name, v)
	if err == nil && there && its {
		if err = unix.Unlinkat(int(parent.Fd()), name, 0); err == nil {
			err = durable.Sync(below(parent, "."))
		}
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", v.Image, err)
	}
	return nil
}
