package watch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// notices are inotify's watches of groups. They tell of groups that come and go, and of rules that
// somebody writes, so that neither is looked for. Without them, or for a group that the kernel allows
// no watch for, all is looked for as often as without.
type notices struct {
	fd   int // noNotices: nobody tells
	of   map[int32]*entry
	room []byte
}

// noNotices is the descriptor of notices that do not work; no watch of inotify has noWatch.
const (
	noNotices = -1
	noWatch   = 0
)

// noticed is what the kernel tells of: groups, and writes of files.
const noticed = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_ONLYDIR

// noticesRoom is what is read at once, and noticesMost bounds how often: together they are more than
// the kernel keeps (fs.inotify.max_queued_events).
const noticesRoom, noticesMost = 64 << 10, 64

func newNotices(follow bool) notices {
	if !follow {
		return notices{fd: noNotices}
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil { // the user has as many as the kernel allows
		return notices{fd: noNotices}
	}
	return notices{fd: fd, of: map[int32]*entry{}, room: make([]byte, noticesRoom)}
}

func (n *notices) close() error {
	if n.fd == noNotices {
		return nil
	}
	fd := n.fd
	n.fd = noNotices
	return unix.Close(fd)
}

// watch has the kernel tell of a group from now on.
func (n *notices) watch(e *entry) {
	if n.fd == noNotices {
		return
	}
	dir, err := e.at.OpenDir()
	if err != nil {
		return // to read its files says why
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if e.id != 0 && (unix.Fstat(dir, &st) != nil || st.Ino != e.id) {
		return // another group has taken its name
	}
	wd, err := unix.InotifyAddWatch(n.fd, fmt.Sprintf("/proc/self/fd/%d", dir), noticed)
	if err != nil {
		return // there are as many as the kernel allows, or no /proc
	}
	e.watch = int32(wd)
	if was := n.of[e.watch]; was != nil && was != e { // the same group by another path: it was renamed
		was.watch = noWatch
		was.shaken()
	}
	n.of[e.watch] = e
}

// end ends a watch. Before Linux 7.0 the kernel does not end it with the group.
func (n *notices) end(e *entry) {
	if e.watch == noWatch {
		return
	}
	if n.fd != noNotices {
		_, _ = unix.InotifyRmWatch(n.fd, uint32(e.watch)) // it may have ended
	}
	if n.of[e.watch] == e {
		delete(n.of, e.watch)
	}
	e.watch = noWatch
}

// heed takes what the kernel has to tell.
func (w *Watcher) heed() {
	if w.notices.fd == noNotices {
		return
	}
	for range noticesMost {
		n, err := unix.Read(w.notices.fd, w.notices.room)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // EAGAIN: that was all
			return
		default:
			w.take(w.notices.room[:n])
		}
	}
	w.shakeAll() // they come faster than they are read
}

// take takes events as the kernel writes them (struct inotify_event).
func (w *Watcher) take(buf []byte) {
	for len(buf) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(buf)), binary.NativeEndian.Uint32(buf[4:])
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		if size > len(buf) {
			break
		}
		name := bytes.TrimRight(buf[unix.SizeofInotifyEvent:size], "\x00")
		w.event(wd, mask, name)
		buf = buf[size:]
	}
}

func (w *Watcher) event(wd int32, mask uint32, name []byte) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		w.shakeAll()
		return
	}
	e := w.notices.of[wd]
	switch {
	case e == nil: // it has ended
	case mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
		delete(w.notices.of, wd)
		e.watch = noWatch
		e.shaken()
	case mask&unix.IN_ISDIR == 0:
		if cgroupfs.IsRuleFile(string(name)) {
			e.stirred = true
		}
	default:
		e.shaken()
		at := path.Join(e.path, string(name))
		if mask&(unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0 { // a path is another group's now
			w.forget(at)
		} else if gone := w.entries[at]; gone != nil && mask&unix.IN_DELETE != 0 { // a new one can have its name
			w.drop(gone)
		}
	}
}

// shaken notes that the groups below may be others.
func (e *entry) shaken() {
	e.listed, e.kids = false, nil
	for ; e != nil; e = e.above {
		e.sure = false
	}
}

// shakeAll has the kernel tell of all groups anew, because what it had to tell was lost: anything may
// have changed, and other groups may have the paths that are known.
func (w *Watcher) shakeAll() {
	w.failed(w.notices.close())
	w.notices = newNotices(true)
	for _, e := range w.entries {
		e.listed, e.kids, e.sure, e.stirred = false, nil, false, true
		e.watch, e.followed, e.whole = noWatch, false, time.Time{}
	}
}

// told reports whether the kernel has told since the last reading if another group has a group's path
// now, or that of one above it.
func (e *entry) told() bool {
	for a := e.above; a != nil; a = a.above {
		if a.watch == noWatch {
			return false
		}
	}
	return e.followed
}

// forget forgets a group and those below it.
func (w *Watcher) forget(path string) {
	for at, e := range w.entries {
		if at == path || strings.HasPrefix(at, path+"/") {
			w.drop(e)
		}
	}
}

// drop forgets a group.
func (w *Watcher) drop(e *entry) {
	w.failed(w.shut(e))
	delete(w.entries, e.path)
	w.order = nil
}
