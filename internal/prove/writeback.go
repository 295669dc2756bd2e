package prove

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// askEvery is how often writeback is asked for. Left alone, the kernel begins it
// after five seconds and more (vm.dirty_expire_centisecs).
const askEvery = 200 * time.Millisecond

// askForWriteback asks for writeback of the file that a load writes to, until stop is
// called. weir asks and not the load: on v1 what a process writes back itself is
// charged to it, and what the kernel's own threads write back is not. At most bytes
// are asked for at a time; 0 for all. stop waits for nothing: a writeback that is
// under way under a limit ends when that has been lifted, or has let it through.
func askForWriteback(pid int, dir string, bytes, size int64) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		var file *os.File
		at := int64(0)
		for {
			select {
			case <-stopped:
				if file != nil {
					_ = file.Close()
				}
				return
			case <-time.After(askEvery):
			}
			if file == nil {
				if file = nameless(pid, dir); file == nil {
					continue
				}
			}
			if bytes <= 0 {
				_ = unix.SyncFileRange(int(file.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
				continue
			}
			_ = unix.SyncFileRange(int(file.Fd()), at, bytes, unix.SYNC_FILE_RANGE_WRITE)
			if at += bytes; at >= size {
				at = 0
			}
		}
	}()
	return func() { close(stopped) }
}

// nameless opens the file without a name that a process has open on the file system of
// dir; nil if it has none yet.
func nameless(pid int, dir string) *os.File {
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
		if !ok || !ok2 || theirs.Nlink != 0 || theirs.Dev != ours.Dev {
			continue
		}
		if f, err := os.Open(link); err == nil {
			return f
		}
	}
	return nil
}
