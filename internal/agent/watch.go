package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/planned"
)

const (
	// settleTime is how long the files of the plans must be quiet: several are often written at once.
	settleTime = 100 * time.Millisecond
	// absentTime is how often a directory of plans that is missing is looked for.
	absentTime = 5 * time.Second
)

// watch loads the plans again when their files change.
func (a *Agent) watch(ctx context.Context) {
	dir := a.options.Plans
	if dir == "" {
		dir = filepath.Join(a.options.Root, planned.Dir)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	told := ""
	for {
		changes, err := watchDir(dir)
		if err == nil { // nobody has told of what changed before
			isNews(&told, nil)
			_ = a.reload("", false) // it is in the log
		}
		if err == nil {
			err = a.reloadOn(ctx, changes)
			_ = changes.Close() // nothing was written
		}
		if ctx.Err() != nil {
			return
		}
		if isNews(&told, err) {
			a.options.Log.Warn("weird cannot watch the files of the plans; after a change, reload them with SIGHUP", "directory", dir, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(absentTime):
		}
	}
}

// isNews reports whether an error is another one than the last, and notes it; nil: there is none any
// more. That the directory went and that it is not there are the same.
func isNews(told *string, err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if errors.Is(err, fs.ErrNotExist) {
		text = fs.ErrNotExist.Error()
	}
	was := *told
	*told = text
	return text != was
}

func watchDir(dir string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	switch {
	case errors.Is(err, unix.EMFILE):
		return nil, tree.NoInstance()
	case err != nil:
		return nil, &fs.PathError{Op: "watch", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), "inotify")
	const mask = unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, dir, mask); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "watch", Path: dir, Err: err}, f.Close())
	}
	return f, nil
}

// reloadOn loads the plans after each change, until the directory is gone or the context ends.
func (a *Agent) reloadOn(ctx context.Context, changes *os.File) error {
	defer context.AfterFunc(ctx, func() { _ = changes.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, err := changes.Read(buf)
		gone := false
		for err == nil { // until it is quiet
			gone = gone || isSelf(buf[:n])
			if err := changes.SetReadDeadline(time.Now().Add(settleTime)); err != nil {
				return err
			}
			n, err = changes.Read(buf)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_ = a.Reload() // it is in the log
		if gone {
			return fs.ErrNotExist
		}
		if err := changes.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// isSelf reports whether events tell of the end of the watched directory.
func isSelf(buf []byte) bool {
	for len(buf) >= unix.SizeofInotifyEvent {
		if binary.NativeEndian.Uint32(buf[4:])&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0 {
			return true
		}
		buf = buf[min(len(buf), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(buf[12:]))):]
	}
	return false
}
