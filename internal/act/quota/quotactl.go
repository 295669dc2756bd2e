package quota

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of quotactl(2) in their XFS form, which the kernel understands for ext4 too
// (fs/quota/quota.c), and the type of projects.
const (
	getQuota   = 'X'<<8 + 3 // Q_XGETQUOTA
	setLimits  = 'X'<<8 + 4 // Q_XSETQLIM
	getState   = 'X'<<8 + 8 // Q_XGETQSTATV
	getNext    = 'X'<<8 + 9 // Q_XGETNEXTQUOTA, Linux 4.6
	ofProjects = 2          // PRJQUOTA
)

// diskQuota is struct fs_disk_quota (include/uapi/linux/dqblk_xfs.h). Space is in sectors.
type diskQuota struct {
	version                 int8
	flags                   int8
	mask                    uint16
	id                      uint32
	spaceHard, spaceSoft    uint64
	inodesHard, inodesSoft  uint64
	space, inodes           uint64
	inodesTimer, spaceTimer int32
	_                       [2]uint16
	_                       [4]int8
	_                       [3]uint64
	_                       int32
	_                       uint16
	_                       int16
	_                       [8]byte
}

const (
	sector     = 512
	isProject  = 2        // FS_PROJ_QUOTA
	allBounds  = 1<<4 - 1 // FS_DQ_ISOFT, IHARD, BSOFT, BHARD
	accounted  = 1 << 4   // FS_QUOTA_PDQ_ACCT
	enforced   = 1 << 5   // FS_QUOTA_PDQ_ENFD
	stateBytes = 160
)

// quotaState is struct fs_quota_statv, of which the flags are read.
type quotaState struct {
	version int8
	_       uint8
	flags   uint16
	_       [stateBytes - 4]byte
}

func (running) quota(f *fileSystem, command int, id uint32, d *diskQuota) error {
	return f.call(command, id, unsafe.Pointer(d))
}

func (running) quotaState(f *fileSystem) (s quotaState, err error) {
	s.version = 1
	err = f.call(getState, 0, unsafe.Pointer(&s))
	return s, err
}

// call is quotactl_fd(2), or before Linux 5.14 quotactl(2) on the file system's device.
func (f *fileSystem) call(command int, id uint32, arg unsafe.Pointer) error {
	op := uintptr(command<<8 | ofProjects)
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.root.Fd(), op, uintptr(id), uintptr(arg), 0, 0)
	if errno == unix.ENOSYS && f.node != "" {
		node, err := unix.BytePtrFromString(f.node)
		if err != nil {
			return err
		}
		_, _, errno = unix.Syscall6(unix.SYS_QUOTACTL, op, uintptr(unsafe.Pointer(node)), uintptr(id), uintptr(arg), 0, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// get reads a project's limits and usage. A project that the file system does not know has
// none.
func (f *fileSystem) get(id uint32) (Bounds, Usage, error) {
	var d diskQuota
	err := f.kernel.quota(f, getQuota, id, &d)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return Bounds{}, Usage{}, nil
	}
	if err != nil {
		return Bounds{}, Usage{}, fmt.Errorf("read the quota of project %d on %s: %w", id, f.mount.Point, err)
	}
	b, u := d.read()
	return b, u, nil
}

func (d *diskQuota) read() (Bounds, Usage) {
	return Bounds{d.spaceHard * sector, d.spaceSoft * sector, d.inodesHard, d.inodesSoft}, Usage{d.space * sector, d.inodes}
}

// next finds the first project from id on that has bounds or files; found is false if there
// is none.
func (f *fileSystem) next(id uint32) (d diskQuota, found bool, err error) {
	err = f.kernel.quota(f, getNext, id, &d)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return d, false, nil
	}
	if err != nil {
		return d, false, fmt.Errorf("list the quotas of %s: %w", f.mount.Point, err)
	}
	return d, true, nil
}

// bound gives a project its bounds, and reads them back.
func (f *fileSystem) bound(id uint32, b Bounds) error {
	d := diskQuota{version: 1, flags: isProject, mask: allBounds, id: id,
		spaceHard: b.Bytes / sector, spaceSoft: b.SoftBytes / sector, inodesHard: b.Files, inodesSoft: b.SoftFiles}
	if err := f.kernel.quota(f, setLimits, id, &d); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return os.ErrPermission
		}
		return fmt.Errorf("set the quota of project %d on %s: %w", id, f.mount.Point, err)
	}
	kept, _, err := f.get(id)
	if err != nil {
		return err
	}
	if kept != b {
		return fmt.Errorf("set the quota of project %d on %s: the kernel has %s now, and not %s: another program changes it too, or the file system cannot store that; try again, or ask for less", id, f.mount.Point, kept, b)
	}
	return nil
}

// state reports whether the file system counts what projects store, and whether it bounds it.
func (f *fileSystem) state() (counts, bounds bool, err error) {
	s, err := f.kernel.quotaState(f)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ESRCH) {
		return false, false, nil // built without quotas, or mounted so
	}
	if err != nil {
		return false, false, fmt.Errorf("ask for the quotas of %s: %w", f.mount.Point, err)
	}
	return s.flags&accounted != 0, s.flags&enforced != 0, nil
}
