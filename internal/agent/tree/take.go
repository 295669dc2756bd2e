package tree

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// bufferSize is how much is read at once: about 100 events, so that nobody is told of a group only once hundreds after it
// have a watch.
const bufferSize = 4 << 10

// readsMax bounds one drain: four times as much as the kernel keeps (fs.inotify.max_queued_events).
const readsMax = 4096

// drain takes what the kernel has to tell now.
func (t *Tree) drain() error {
	for range readsMax {
		n, err := unix.Read(t.fd, t.buffer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return err
		}
		if err := t.take(t.buffer[:n]); err != nil {
			return err
		}
	}
	return nil
}

// take takes events as the kernel writes them (struct inotify_event).
func (t *Tree) take(buf []byte) error {
	for len(buf) >= unix.SizeofInotifyEvent {
		watch, mask := int32(binary.NativeEndian.Uint32(buf)), binary.NativeEndian.Uint32(buf[4:])
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		if size > len(buf) {
			break
		}
		name := strings.TrimRight(string(buf[unix.SizeofInotifyEvent:size]), "\x00")
		buf = buf[size:]
		if err := t.event(watch, mask, name); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) event(watch int32, mask uint32, name string) error {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		t.stats.Overflows++
		t.lost = true
		return nil
	}
	n := t.watched[watch]
	switch {
	case n == nil: // it has ended since
		return nil
	case mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
		if n == t.top {
			return ErrGone
		}
		delete(t.watched, watch) // the group above tells of its end
		n.watch = noWatch
		return nil
	case mask&unix.IN_MODIFY != 0:
		if slices.Contains(t.options.Files, name) {
			t.events = append(t.events, Event{Kind: Written, Path: n.path(), File: name})
		}
		return nil
	case mask&unix.IN_ISDIR == 0:
		return nil
	}
	known := n.below[name]
	if mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0 {
		t.confirm(Ended, n, name)
		if known != nil {
			t.drop(known)
		}
		return nil
	}
	t.confirm(Born, n, name)
	if known != nil && mask&unix.IN_MOVED_TO == 0 { // a list had it already
		return nil
	}
	if known != nil { // it may have taken the place of the known one
		t.drop(known)
	}
	return t.add(n, name)
}

// confirm notes that an event tells of what a comparison has found: it was not missed. Nor was what
// is below a group that an event tells of: the group is looked at anew, and the events of its former
// watch are not taken.
func (t *Tree) confirm(kind Kind, above *node, name string) {
	if len(t.found) == 0 {
		return
	}
	path := (&node{above: above, name: name}).path()
	maps.DeleteFunc(t.found, func(c change, _ int) bool {
		return c == change{kind, path} || strings.HasPrefix(c.path, path+"/")
	})
}

// add adds a group, and those below it.
func (t *Tree) add(above *node, name string) error {
	if above.gone {
		return nil
	}
	if above.depth >= t.options.DepthMax || t.groups >= t.options.GroupsMax {
		t.stats.Left++
		return nil
	}
	n := above.attach(name)
	t.groups++
	at := len(t.events)
	t.events = append(t.events, Event{Kind: Born, Path: n.path(), Found: t.finding})
	err := t.enter(n)
	if isGone(err) { // an event tells of that too, and finds nothing
		if !n.gone && len(t.events) == at+1 {
			t.remove(n)
			t.events = t.events[:at]
			return nil
		}
		t.drop(n)
		return nil
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENAMETOOLONG) {
		t.stats.Left++
		return nil // known, but nobody tells what happens below it
	}
	return err
}

// enter watches a group and adds those below it.
func (t *Tree) enter(n *node) error {
	names, _, err := t.look(n)
	if err != nil {
		return err
	}
	for _, name := range names {
		if n.gone {
			return nil
		}
		if n.below[name] == nil {
			if err := t.add(n, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop takes a group out, and those below it, the deepest first.
func (t *Tree) drop(n *node) {
	if n.gone {
		return
	}
	for _, child := range n.below {
		t.drop(child)
	}
	t.events = append(t.events, Event{Kind: Ended, Path: n.path(), Found: t.finding})
	t.remove(n)
}

func (t *Tree) remove(n *node) {
	n.gone = true
	t.groups--
	t.unwatch(n)
	n.detach()
}

func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOTDIR)
}
