package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/planned"
)

const (
	// settleTime is how long the files of the plans must be quiet: several are often written at once.
	settleTime = 200 * time.Millisecond
	// arrivedTime is that for a directory that has just come: it may be in the middle of being copied, and plans that
	// are not there yet would be taken for no plans.
	arrivedTime = 500 * time.Millisecond
	// settleMost bounds the wait for files that do not get quiet, or that somebody writes and does not close.
	settleMost = 5 * time.Second
)

// A watched directory tells of changes of its files.
type watched struct {
	*os.File
	dir  string
	file string      // the only file that counts; empty: all that are plans
	was  fs.FileInfo // of the directory
	buf  []byte
	gone bool // the directory was removed or renamed
	// open are the files of plans that somebody has made (false) or written to (true), and has not closed since.
	open map[string]bool
	told string // what was said last of those that are loaded all the same

	asked, links bool // whether a file of plans is a link, if that was asked since they changed
}

// News is what events tell of the plans.
type news int

const (
	nothing news = iota
	removed      // another file was removed, perhaps because the directory is being removed
	changed      // the plans may have changed
)

// watchDir watches a directory. Not before a file is closed is it known to be whole.
func watchDir(dir, file string) (*watched, error) {
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
	const mask = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, dir, mask); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "watch", Path: dir, Err: err}, f.Close())
	}
	return &watched{File: f, dir: dir, file: file, was: info, buf: make([]byte, 64<<10), open: map[string]bool{}}, nil
}

// isThere reports whether the directory still has its name. The kernel tells of a removal when nobody is in the directory
// any more: a shell may be.
func (w *watched) isThere() bool {
	info, err := os.Stat(w.dir)
	return err == nil && os.SameFile(info, w.was)
}

// isPlan reports whether a name is that of a file with plans.
func (w *watched) isPlan(name string) bool {
	if w.file != "" {
		return name == w.file
	}
	return planned.IsFile(name)
}

// read waits for events.
func (w *watched) read() (news, error) {
	n, err := w.Read(w.buf)
	if err != nil {
		return nothing, err
	}
	return w.take(w.buf[:n]), nil
}

// pending takes the events that are there, and waits for none. The deadline does not count.
func (w *watched) pending() (its news, err error) {
	raw, err := w.SyscallConn()
	if err != nil {
		return nothing, err
	}
	n := 0
	out := raw.Control(func(fd uintptr) {
		if n, err = unix.Read(int(fd), w.buf); errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			n, err = 0, nil
		}
	})
	if err := errors.Join(out, err); err != nil {
		return nothing, &fs.PathError{Op: "watch", Path: w.dir, Err: err}
	}
	return w.take(w.buf[:n]), nil
}

// take notes what events tell.
func (w *watched) take(events []byte) (all news) {
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		size := min(len(events), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(events[12:])))
		name := string(bytes.TrimRight(events[unix.SizeofInotifyEvent:size], "\x00"))
		events = events[size:]
		all = max(all, w.note(mask, name))
	}
	return all
}

// note notes what one event tells. Files that are no plans change nothing, unless a plan is a link: what it leads to may be
// in the directory, as in that of a ConfigMap.
func (w *watched) note(mask uint32, name string) news {
	switch {
	case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0:
		w.gone = true
	case mask&unix.IN_Q_OVERFLOW != 0:
		clear(w.open) // some may be closed by now
		w.asked = false
	case w.isPlan(name) && mask&unix.IN_MODIFY != 0:
		w.open[name] = true
	case w.isPlan(name):
		delete(w.open, name)
		if mask&unix.IN_CREATE != 0 {
			w.open[name] = false
		}
		w.asked = false
	case mask&unix.IN_MODIFY != 0:
		return nothing
	case w.hasLinks():
	case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
		return removed
	default:
		return nothing
	}
	return changed
}

// hasLinks reports whether a file of plans is a link, or may be one.
func (w *watched) hasLinks() bool {
	if !w.asked {
		entries, err := os.ReadDir(w.dir)
		w.asked = err == nil
		w.links = err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return w.isPlan(e.Name()) && e.Type()&os.ModeSymlink != 0 })
	}
	return w.links
}

// writers are the files that somebody is writing. One that has just been made is, if it is empty: a link is there as a whole.
func (w *watched) writers() (names []string) {
	for name, written := range w.open {
		if !written {
			info, err := os.Lstat(filepath.Join(w.dir, name))
			if err != nil || !info.Mode().IsRegular() || info.Size() > 0 {
				continue
			}
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// settle waits until the plans have not changed for a time and nobody writes a file of them any more. late: that is not so
// by the end; then it waits no longer. seen is what it was told of meanwhile.
func (w *watched) settle(ctx context.Context, quiet time.Duration, end time.Time) (seen news, late bool, err error) {
	for last := time.Now(); ; {
		until := last.Add(quiet)
		if len(w.writers()) > 0 {
			until = end
		}
		if err := w.SetReadDeadline(until); err != nil {
			return seen, false, err
		}
		if ctx.Err() != nil { // else the deadline that tells of it comes after this one
			return seen, false, ctx.Err()
		}
		its, err := w.read()
		over := errors.Is(err, os.ErrDeadlineExceeded)
		if over {
			its, err = w.pending() // on a busy machine events may be there and nobody has read them
		}
		if err != nil {
			return seen, false, err
		}
		seen = max(seen, its)
		switch {
		case its == changed && last.After(end):
			return seen, true, nil
		case its == changed: // also the first time after the end: it may be quiet from now on
			last = time.Now()
		case over:
			return seen, len(w.writers()) > 0, nil
		}
	}
}
