package escape

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Writable is a regular file or a block device that a process has open for writing.
type Writable struct {
	Path   string        // as the process would name it
	Direct bool          // past the page cache
	Born   time.Time     // of the file; zero: not known
	Device blkdev.Number // what stat(2) says: of a file system of several disks (btrfs), a number of its own
}

// Bounds of one look.
const (
	writersMax   = 64
	writablesMax = 256
)

// Writables lists the files that processes have open for writing, as far as they can be read.
// It does not see a file that is mapped and closed.
func Writables(pids []int) []Writable {
	var all []Writable
	seen := map[Writable]bool{}
	for _, pid := range pids[:min(len(pids), writersMax)] {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		entries, err := os.ReadDir(filepath.Join(dir, "fd"))
		if err != nil {
			continue
		}
		for _, e := range entries {
			w, ok := writable(dir, e.Name())
			if !ok || seen[w] {
				continue
			}
			seen[w] = true
			if all = append(all, w); len(all) == writablesMax {
				return all
			}
		}
	}
	return all
}

func writable(dir, fd string) (w Writable, ok bool) {
	flags, err := openFlags(filepath.Join(dir, "fdinfo", fd))
	if err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
		return w, false
	}
	name := filepath.Join(dir, "fd", fd)
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, name, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_BTIME, &st); err != nil ||
		st.Mode&unix.S_IFMT != unix.S_IFREG && st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return w, false
	}
	var system unix.Statfs_t
	if err := unix.Statfs(name, &system); err != nil || system.Type == unix.TMPFS_MAGIC || system.Type == unix.RAMFS_MAGIC {
		return w, false // write_bytes does not count what stays in memory
	}
	w.Device = blkdev.Number{Major: st.Dev_major, Minor: st.Dev_minor}
	if st.Mask&unix.STATX_BTIME != 0 {
		w.Born = time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
	}
	if w.Path, err = os.Readlink(name); err != nil {
		return w, false
	}
	w.Direct = flags&unix.O_DIRECT != 0
	return w, true
}

// openFlags reads the flags that a descriptor was opened with (proc_pid_fdinfo(5)).
func openFlags(name string) (int64, error) {
	info, err := peek.File(name, peek.Short)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(info), "flags:")
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseInt(strings.TrimSpace(line), 8, 64)
}
