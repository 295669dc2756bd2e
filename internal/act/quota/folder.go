package quota

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// deepest bounds how many directories can be in each other: anybody can make many, and
	// each takes some memory here.
	deepest = 100_000
	// openMost is how many of them are open at once. Of those further down only the last two
	// are open, and a handle reopens one that was closed.
	openMost = 400
	// nameMost bounds the name of a directory in a message, in bytes.
	nameMost = 4096
)

// A folder is an open directory of a tree. One far down is closed while those below it are
// looked at.
type folder struct{ *os.File }

// into opens a directory for visit. It skips one that is gone, or is no longer a directory.
func (w *walk) into(dir *folder, name string, visit func(below *folder) error) error {
	if w.depth++; w.depth > deepest {
		return fmt.Errorf("%s...: more than %d nested directories", dir.Name()[:min(len(dir.Name()), 200)], deepest)
	}
	defer func() { w.depth-- }()
	f, err := openDir(dir.File, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	below := &folder{f}
	defer func() { _ = below.Close() }() // it was only read
	if w.depth <= openMost {
		return visit(below)
	}
	return dir.away(below, func() error { return visit(below) })
}

// away closes the directory meanwhile. It is found again by its handle (open_by_handle_at(2)),
// wherever it has been moved to.
func (dir *folder) away(below *folder, meanwhile func() error) error {
	handle, _, err := unix.NameToHandleAt(int(dir.Fd()), "", unix.AT_EMPTY_PATH)
	if err != nil {
		return &os.PathError{Op: "name_to_handle_at", Path: dir.Name(), Err: err}
	}
	name := dir.Name()
	if err := dir.Close(); err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return err
	}
	fd, err := unix.OpenByHandleAt(int(below.Fd()), handle, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return &os.PathError{Op: "open again", Path: name, Err: err}
	}
	dir.File = os.NewFile(uintptr(fd), name)
	return nil
}

// below names a file in a directory for messages, without the middle of a long name.
func below(dir, name string) string {
	name = dir + "/" + name
	if len(name) <= nameMost {
		return name
	}
	return name[:nameMost/4] + "..." + name[len(name)-nameMost/2:]
}
