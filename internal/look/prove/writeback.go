package prove

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// askEvery is how often writeback is asked for. Left alone, the kernel begins it
// after five seconds and more (vm.dirty_expire_centisecs).
const askEvery = 200 * time.Millisecond

// An asking is how writeback of a load's file is asked for.
type asking struct {
	dir   string
	size  int64 // of the file
	chunk int64 // what is asked for at once, and so the largest request
	most  int64 // in all at a time; 0 for all of the file
	// as is the group that it is asked for in; the zero Group: weir's own.
	as cgroupfs.Group
	// overlay says that the file is overlayfs's, which has the pages in another file: a part
	// of it cannot be asked for, only all (fs/overlayfs/file.c, ovl_fsync).
	overlay bool
}

// isOverlay reports whether a directory is on an overlay.
func isOverlay(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC
}

// chunkFor is a twentieth of a second of a limit, so that a window holds many requests:
// the kernel's own writeback of a large file comes in requests of many megabytes.
func chunkFor(rate uint64) int64 {
	return int64(min(max(rate/20, 64<<10), 4*mega)) / page * page
}

// start asks for writeback of the file that a process writes to, until stop is called. weir
// asks, not the load: on v1 the kernel charges a process for what it writes back itself, but
// not for what kernel threads write back. stop does not wait: a writeback under a limit ends
// when the limit has been removed, or has let it through.
//
// The limit on the writeback of kernel threads has to apply to this writeback too: if that is
// the root group's rule, a thread of weir asks from the root group.
func (a asking) start(pid int) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		if a.as.Hierarchy() != nil {
			runtime.LockOSThread() // for good: the thread ends with this function
			if a.as.AddThread(unix.Gettid()) != nil {
				return // the kernel writes back in its own time
			}
		}
		var file *os.File
		for at := int64(0); ; {
			select {
			case <-stopped:
				if file != nil {
					_ = file.Close()
				}
				return
			case <-time.After(askEvery):
			}
			if file == nil {
				file = nameless(pid, a.dir, a.overlay)
			}
			switch {
			case file == nil:
			case a.overlay:
				_ = unix.Fdatasync(int(file.Fd()))
			default:
				at = a.ask(file, at, stopped)
			}
		}
	}()
	return func() { close(stopped) }
}

// ask asks for the writeback of what comes after at, and returns how far it came.
func (a asking) ask(file *os.File, at int64, stopped <-chan struct{}) int64 {
	most := a.most
	if most <= 0 {
		most = a.size
	}
	for done := int64(0); done < most; done += a.chunk {
		select {
		case <-stopped:
			return at
		default:
		}
		_ = unix.SyncFileRange(int(file.Fd()), at, a.chunk, unix.SYNC_FILE_RANGE_WRITE)
		if at += a.chunk; at >= a.size {
			at = 0
		}
	}
	return at
}

// nameless opens the file without a name that a process has open on the file system of
// dir; nil if it has none yet. Files of an overlay may be of other devices than its
// directories (overlayfs.rst, "Inode properties").
func nameless(pid int, dir string, overlay bool) *os.File {
	on, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	fds := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		return nil // it has ended
	}
	for _, e := range entries {
		link := filepath.Join(fds, e.Name())
		info, err := os.Stat(link)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		theirs, ok := info.Sys().(*syscall.Stat_t)
		ours, ok2 := on.Sys().(*syscall.Stat_t)
		if !ok || !ok2 || theirs.Nlink != 0 || theirs.Dev != ours.Dev && !overlay {
			continue
		}
		if f, err := peek.Open(link); err == nil {
			return f
		}
	}
	return nil
}
