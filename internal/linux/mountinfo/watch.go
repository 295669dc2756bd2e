package mountinfo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A Watch has lists of mounts that are read again and again, and waited for. The kernel tells of each change of a mount
// namespace once for each open file (poll(2) of proc_pid_mountinfo(5)). Its methods may be called from one goroutine
// at a time.
type Watch struct {
	lists  []list
	wake   *os.File // an eventfd(2) that ends a wait
	wakeFD int
}

// A list is that of one mount namespace.
type list struct {
	path  string
	file  *os.File // Go's poller does not have it: it would take what the kernel tells
	fd    int
	tells bool // the kernel tells of changes; of a copy of a list it does not
}

// Open opens lists of mounts, such as /proc/self/mountinfo. What cannot be opened is left out, unless that is all. The first
// Wait tells of changes from now on.
func Open(paths ...string) (*Watch, error) {
	w := &Watch{}
	var errs []error
	for _, path := range paths {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			errs = append(errs, &fs.PathError{Op: "open", Path: path, Err: err})
			continue
		}
		var st unix.Statfs_t
		tells := unix.Fstatfs(fd, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
		w.lists = append(w.lists, list{path, os.NewFile(uintptr(fd), path), fd, tells})
	}
	if len(w.lists) == 0 {
		return nil, errors.Join(errs...)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch %s: %w", w.lists[0].path, err), w.Close())
	}
	w.wake, w.wakeFD = os.NewFile(uintptr(wake), "eventfd"), wake
	return w, nil
}

// Close ends the use of the lists.
func (w *Watch) Close() error {
	var errs []error
	for _, l := range w.lists {
		errs = append(errs, l.file.Close())
	}
	if w.wake != nil {
		errs = append(errs, w.wake.Close())
	}
	return errors.Join(errs...)
}

// Read calls each for every line of all lists as they are now, until it says stop of a list.
func (w *Watch) Read(each func(Info) (stop bool)) error {
	for _, l := range w.lists {
		if _, err := Read(io.NewSectionReader(l.file, 0, 1<<62), each); err != nil {
			return fmt.Errorf("read %s: %w", l.path, err)
		}
	}
	return nil
}

// Wait waits until mounts have changed since the last Wait, for a time at most. changed says whether they have, or may
// have, where the kernel does not tell. The error is that of the context, or of the kernel.
func (w *Watch) Wait(ctx context.Context, most time.Duration) (changed bool, err error) {
	stop := context.AfterFunc(ctx, w.interrupt)
	defer stop()
	for deadline := time.Now().Add(most); ; {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		changed, err := w.poll(max(time.Until(deadline), 0))
		if err != nil || changed {
			return changed, err
		}
		if !time.Now().Before(deadline) {
			return w.mayHaveChanged(), nil
		}
	}
}

// poll waits for the kernel once.
func (w *Watch) poll(most time.Duration) (changed bool, err error) {
	files := []unix.PollFd{{Fd: int32(w.wakeFD), Events: unix.POLLIN}}
	for _, l := range w.lists {
		files = append(files, unix.PollFd{Fd: int32(l.fd), Events: unix.POLLPRI})
	}
	_, err = unix.Poll(files, int((most+time.Millisecond-1)/time.Millisecond))
	switch {
	case errors.Is(err, unix.EINTR):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("poll %s: %w", w.lists[0].path, err)
	case files[0].Revents != 0:
		_, _ = unix.Read(w.wakeFD, make([]byte, wakeSize)) // somebody may have been before
	}
	for i, f := range files[1:] {
		switch {
		case f.Revents&(unix.POLLPRI|unix.POLLERR) != 0:
			changed = true
		case f.Revents != 0:
			return false, &fs.PathError{Op: "poll", Path: w.lists[i].path, Err: unix.EIO}
		}
	}
	return changed, nil
}

// mayHaveChanged reports whether the kernel does not tell of the changes of a list.
func (w *Watch) mayHaveChanged() bool {
	return slices.ContainsFunc(w.lists, func(l list) bool { return !l.tells })
}

// wakeSize is what eventfd(2) reads and writes.
const wakeSize = 8

// interrupt ends a wait: this one, or the next.
func (w *Watch) interrupt() {
	_, _ = w.wake.Write(binary.NativeEndian.AppendUint64(nil, 1)) // closed: nobody waits
}
