package state

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// errMoved says that the directory of the records is not there any more.
var errMoved = errors.New("the directory is gone")

// Await returns nil when there is a record of a kind, whoever has made it: at once, or when the kernel tells of one. Nothing
// is looked for again and again. The error is that of the context, or says why the kernel does not tell.
func (d Dir) Await(ctx context.Context, kind string) error {
	if err := d.make(); err != nil {
		return err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("await a record: %w", err)
	}
	told := os.NewFile(uintptr(fd), "inotify")
	defer told.Close()
	if _, err := unix.InotifyAddWatch(fd, d.path, unix.IN_MOVED_TO|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_ONLYDIR); err != nil {
		return &fs.PathError{Op: "watch", Path: d.path, Err: err}
	}
	defer context.AfterFunc(ctx, func() { _ = told.SetReadDeadline(time.Unix(1, 0)) })()
	room := make([]byte, namesBytes)
	for look := true; ; {
		if look {
			paths, err := d.records(kind)
			if err != nil || slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, finished) }) {
				return err
			}
		}
		n, err := told.Read(room)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			look, err = isTold(room[:n], kind+".")
		}
		if err != nil {
			return fmt.Errorf("await a record in %s: %w", d.path, err)
		}
	}
}

// isTold reports whether events (struct inotify_event) may be about a file whose name begins so.
func isTold(events []byte, prefix string) (is bool, err error) {
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		size := min(len(events), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(events[12:])))
		if mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 {
			return false, errMoved
		}
		is = is || mask&unix.IN_Q_OVERFLOW != 0 || strings.HasPrefix(string(events[unix.SizeofInotifyEvent:size]), prefix)
		events = events[size:]
	}
	return is, nil
}
