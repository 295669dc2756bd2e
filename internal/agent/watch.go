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
	// arrivedTime is that for a directory that has just come: it may be in the middle of being copied, and plans that
	// are not there yet would be taken for no plans.
	arrivedTime = 500 * time.Millisecond
	// awayTime is how often a directory of plans is looked for while its plans are in force, and absentTime otherwise.
	awayTime   = 100 * time.Millisecond
	absentTime = 5 * time.Second
)

// errGone says that the watched directory has lost its name. Another one may have it already.
var errGone = errors.New("the directory was removed or renamed")

// watch loads the plans again when their files change.
func (a *Agent) watch(ctx context.Context) {
	dir := a.options.Plans
	if dir == "" {
		dir = filepath.Join(a.options.Root, planned.Dir)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	told, quiet := "", time.Duration(0)
	for {
		changes, err := watchDir(dir)
		if err == nil {
			isNews(&told, nil)
			err = a.reloadOn(ctx, changes, quiet)
			_ = changes.Close() // nothing was written
		}
		if ctx.Err() != nil {
			return
		}
		wait := absentTime
		quiet = arrivedTime
		switch {
		case errors.Is(err, errGone):
			wait = 0
		case errors.Is(err, fs.ErrNotExist) && a.hasFiles():
			wait = awayTime
			if isNews(&told, err) {
				a.tellAway()
			}
		case isNews(&told, err):
			a.options.Log.Warn("weird cannot watch the files of the plans; after a change, reload them with SIGHUP", "directory", dir, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// hasFiles reports whether plans of files are in force.
func (a *Agent) hasFiles() bool {
	config, _ := a.plans.Now()
	return len(config.Files) > 0
}

// tellAway says that the plans in force are away, if they still are. If not, they may not all be there yet.
func (a *Agent) tellAway() {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	now, _ := a.plans.Now()
	if _, err := load(a.options, now); err != nil {
		a.refuse("", err)
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

// A watched directory tells of changes of its files.
type watched struct {
	*os.File
	dir string
	was fs.FileInfo // of the directory
}

func watchDir(dir string) (*watched, error) {
	info, err := os.Stat(dir) // first: of one that is away this is asked often, and costs little
	if err != nil {
		return nil, err
	}
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
	return &watched{f, dir, info}, nil
}

// isThere reports whether the directory still has its name. The kernel tells of a removal when nobody is in the directory
// any more: a shell may be.
func (w *watched) isThere() bool {
	info, err := os.Stat(w.dir)
	return err == nil && os.SameFile(info, w.was)
}

// reloadOn loads the plans at once, or after their files were quiet for a time, and then after each change, until the
// directory is gone or the context ends.
func (a *Agent) reloadOn(ctx context.Context, changes *watched, quiet time.Duration) error {
	defer context.AfterFunc(ctx, func() { _ = changes.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, 64<<10)
	for first := true; ; first = false {
		gone := false
		if !first {
			n, err := changes.Read(buf)
			if err != nil {
				return err
			}
			quiet, gone = settleTime, isSelf(buf[:n])
		}
		if quiet > 0 {
			went, err := settle(changes, quiet, buf)
			if err != nil {
				return err
			}
			gone = gone || went
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case gone || !first && !changes.isThere():
			return errGone
		}
		_ = a.reload("", !first) // it is in the log; at first nobody has told of what changed before
		if err := changes.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if ctx.Err() != nil { // else the deadline that tells of it comes after this one
			return ctx.Err()
		}
	}
}

// settle waits until there were no events for a time. gone says that the directory is.
func settle(changes *watched, quiet time.Duration, buf []byte) (gone bool, err error) {
	for {
		if err := changes.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return gone, err
		}
		n, err := changes.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return gone, nil
		}
		if err != nil {
			return gone, err
		}
		gone = gone || isSelf(buf[:n])
	}
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
