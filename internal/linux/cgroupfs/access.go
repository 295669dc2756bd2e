package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// A RightsError says what the caller may not do, before anything is tried.
type RightsError struct {
	Op      string // "make a cgroup in", "write"
	Path    string
	Version Version
}

func (e *RightsError) Error() string {
	return fmt.Sprintf("%s %s: permission denied (%s)", e.Op, e.Path, permission(unix.EACCES, e.Version))
}

// Is makes errors.Is(err, fs.ErrPermission) true.
func (e *RightsError) Is(target error) bool { return target == fs.ErrPermission }

// Class makes it fault.Denied.
func (e *RightsError) Class() fault.Class { return fault.Denied }

// MayMake reports why the caller cannot make the group: a *RightsError, or an
// *fault.Unsupported for a hierarchy that nobody writes to.
func (g Group) MayMake() error {
	if err := g.h.Writable(); err != nil {
		return err
	}
	return g.Parent().access(".", "make a cgroup in")
}

// MaySetRule reports why the caller cannot write the group's rules. If the group has no rule
// files, that is not a matter of rights: SetRule reports the reason.
func (g Group) MaySetRule() error {
	if err := g.h.Writable(); err != nil {
		return err
	}
	name := fileV2
	if g.h.Version == V1 {
		name = filesV1[0]
	}
	return g.access(name, "write")
}

// access asks whether the caller may write to a file of the group, or with "." make
// entries in its directory. The kernel's answer holds for cgroup files, which check
// rights when they are opened.
func (g Group) access(name, op string) error {
	dir, err := g.h.open(g.path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	err = unix.Faccessat(dir, name, unix.W_OK, unix.AT_EACCESS)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return &RightsError{Op: op, Path: g.h.file(path.Join(g.path, name)), Version: g.h.Version}
	}
	return nil
}
