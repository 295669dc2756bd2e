package machine

import "golang.org/x/sys/unix"

// memoryDir is where user-mode Linux keeps the guest's memory, a deleted file
// that it maps: on a tmpfs, lest the host writes all of it to a disk now and then.
func memoryDir(otherwise string) string {
	const shm = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(shm, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return otherwise
	}
	const need = 2 << 30
	if fs.Bavail*uint64(fs.Bsize) < need || fs.Flags&unix.ST_NOEXEC != 0 {
		return otherwise
	}
	return shm
}
