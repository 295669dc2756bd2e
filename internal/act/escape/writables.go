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
	Device blkdev.Number // what stat(2) says: of a subvolume of btrfs, a number of its own

	compressed bool // it may take less of the disk than is written
	mount, pid int  // by which mount a process has it open
}

// fileSystem is the number of the file system, as mountinfo has it, and whether all that is written
// there may be compressed.
func (w Writable) fileSystem() (n blkdev.Number, compresses bool) {
	if w.Device.Major != 0 {
		return w.Device, false
	}
	mounts, _ := blkdev.New("/").Mounts(w.pid) // without, no mount has the file
	for _, m := range mounts {
		if m.ID == w.mount {
			_, may := m.SuperOption("compress")
			_, must := m.SuperOption("compress-force")
			return m.Number, may || must
		}
	}
	return w.Device, false
}

// Compresses reports whether the file may take less of the disk than is written to it.
func (w Writable) Compresses() bool {
	_, all := w.fileSystem()
	return all || w.compressed
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
			w.pid = pid
			if all = append(all, w); len(all) == writablesMax {
				return all
			}
		}
	}
	return all
}

func writable(dir, fd string) (w Writable, ok bool) {
	flags, mount, err := opening(filepath.Join(dir, "fdinfo", fd))
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
	w.Direct, w.mount = flags&unix.O_DIRECT != 0, mount
	w.compressed = st.Attributes&unix.STATX_ATTR_COMPRESSED != 0
	return w, true
}

// opening reads the flags that a descriptor was opened with, and the mount (proc_pid_fdinfo(5)).
func opening(name string) (flags int64, mount int, err error) {
	info, err := peek.File(name, peek.Short)
	if err != nil {
		return 0, 0, err
	}
	field := func(name string) string {
		_, rest, _ := strings.Cut(string(info), name+":")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(line)
	}
	if flags, err = strconv.ParseInt(field("flags"), 8, 64); err != nil {
		return 0, 0, err
	}
	mount, err = strconv.Atoi(field("mnt_id"))
	return flags, mount, err
}
