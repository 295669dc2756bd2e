package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// beneath is how every path below a hierarchy's root is resolved: openat2 refuses
// "..", symbolic links, magic links and mounts on the way (Linux 5.6).
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV

// fileMax bounds what is read of one file: the longest, io.max and io.stat, take
// about 100 bytes a device.
const fileMax = 1 << 20

// wholeMost is the least that a read(2) returns before the last read of a file. The kernel
// makes these files a page at a time (fs/seq_file.c), and ends a page only where the next line
// does not fit.
const wholeMost = 2048

// A Write is one line for one file.
type Write struct {
	File string `json:"file"`
	Line string `json:"line"`
}

func (h *Hierarchy) open(name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: beneath}
	for {
		fd, err := unix.Openat2(h.dir, name, &how)
		switch err {
		case nil:
			return fd, nil
		case unix.EINTR, unix.EAGAIN:
			continue
		case unix.ENOSYS:
			return -1, &fault.Unsupported{Feature: "open " + h.file(name), Reason: "the kernel has no openat2", Remedy: "boot Linux 5.6 or later"}
		default:
			return -1, &fs.PathError{Op: "open", Path: h.file(name), Err: err}
		}
	}
}

// file returns the path of a file of the hierarchy, for people.
func (h *Hierarchy) file(name string) string { return path.Join(h.host, name) }

func (h *Hierarchy) read(name string) (string, error) {
	fd, err := h.open(name, unix.O_RDONLY|unix.O_NONBLOCK) // a copy of a host can have a FIFO there
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	buf := make([]byte, 0, 4096)
	for len(buf) < fileMax {
		if cap(buf)-len(buf) < wholeMost {
			buf = append(make([]byte, 0, 4*cap(buf)), buf...)
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", &fs.PathError{Op: "read", Path: h.file(name), Err: err}
		default:
			buf = buf[:len(buf)+n]
			if n < wholeMost { // all of it, or what was left
				return string(buf), nil
			}
		}
	}
	return "", fmt.Errorf("read %s: longer than %d bytes", h.file(name), fileMax)
}

// write hands a line to the kernel in one write(2), which is how cgroup files take
// it or refuse it as a whole.
func (h *Hierarchy) write(name, line string) error {
	refuse := func(err error, why string) error {
		return &WriteError{Write: Write{File: h.file(name), Line: line}, Err: err, Why: why}
	}
	if err := h.Writable(); err != nil {
		return err
	}
	if h.stand != nil {
		if err := h.stand(h.file(name), line); err != nil {
			return refuse(err, "")
		}
		return nil
	}
	fd, err := h.open(name, unix.O_WRONLY)
	if err != nil {
		return refuse(err, permission(err, h.Version))
	}
	defer unix.Close(fd)
	for {
		_, err := unix.Write(fd, []byte(line+"\n"))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return refuse(err, permission(err, h.Version))
		}
		return nil
	}
}

// permission names the right that is missing. Only v2 has groups that root delegates.
func permission(err error, v Version) string {
	refused := errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
	switch {
	case refused && v == V2:
		return "run weir as root, or in a group that root has delegated to you"
	case refused:
		return "run weir as root"
	case errors.Is(err, unix.EROFS):
		return "the cgroup file system is mounted read-only"
	}
	return ""
}
