package volume

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// errMoved means that another mount is where a volume's was a moment ago.
var errMoved = errors.New("somebody keeps renaming directories on the way to it; end that, and try again")

// unmountTries bounds how often a mount that is being moved about is looked for again.
const unmountTries = 20

// unmount unmounts one mount and no other. Its place can be below a user's directory, and the
// user may rename directories on the way or put a symbolic link there meanwhile. So weir reads
// the place from the kernel's list, opens its parent without following links, compares the
// mount found there with the intended one, and names it in the call below that descriptor. (A
// directory with a mount on it cannot be renamed itself.)
func (s Store) unmount(m blkdev.Mount) error {
	for try := 0; ; try++ {
		err := s.machine().unmount(m)
		if err == nil || try == unmountTries || !isMoved(err) {
			return err
		}
		mounts, listErr := s.Devices.MountsOf(0, m)
		if listErr != nil {
			return listErr
		}
		i := slices.IndexFunc(mounts, func(other blkdev.Mount) bool { return other.ID == m.ID })
		if i < 0 {
			return nil // it is gone: somebody else has unmounted it
		}
		m = mounts[i]
	}
}

func isMoved(err error) bool {
	for _, moved := range []error{errMoved, unix.ENOENT, unix.ELOOP, unix.ENOTDIR, unix.EINVAL} {
		if errors.Is(err, moved) {
			return true
		}
	}
	return false
}

func unmountAt(m blkdev.Mount) error {
	parent, err := openParent(m.Point)
	if err != nil {
		return err
	}
	defer parent.Close()
	if its, err := isMount(int(parent.Fd()), filepath.Base(m.Point), m); err != nil {
		return err
	} else if !its {
		return fmt.Errorf("unmount %s: %w", m.Point, errMoved)
	}
	return unix.Unmount(below(parent, m.Point), unix.UMOUNT_NOFOLLOW)
}

// isMount reports whether a directory's name leads to the mount. It closes its descriptor
// before it returns, because an open one keeps the mount busy.
func isMount(dir int, name string, m blkdev.Mount) (bool, error) {
	f, err := openPlainAt(dir, name, m.Point, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_MNT_ID, &st); err != nil {
		return false, err
	}
	if (blkdev.Number{Major: st.Dev_major, Minor: st.Dev_minor}) != m.Number {
		return false, nil
	}
	return st.Mask&unix.STATX_MNT_ID == 0 || int(st.Mnt_id) == m.ID, nil // before 5.8 the device alone tells
}
