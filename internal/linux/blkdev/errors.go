package blkdev

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
)

// A NoBlockDeviceError says that a path is on a file system without a block device
// of its own, where a rule of blk-throttle has nothing to bind to.
type NoBlockDeviceError struct {
	Path   string // what was asked for
	FSType string // the file system that ends the chain: "tmpfs", "nfs4"
	Reason string // one sentence without a full stop, with what to do where something can be done
}

func (e *NoBlockDeviceError) Error() string {
	return plain.Line(fmt.Sprintf("resolve %s: no block device beneath: %s", plain.Brief(e.Path), plain.Brief(e.Reason)))
}

// Class makes it fault.NotPossible.
func (e *NoBlockDeviceError) Class() fault.Class { return fault.NotPossible }

// A NotFoundError says that a device or a path does not exist. errors.Is holds it
// for fs.ErrNotExist.
type NotFoundError struct {
	Spec   string   // what was asked for
	Reason string   // "no such block device", "no such file or directory"
	Looked []string // where it was looked for
	Near   []string // names that are close to Spec
	Have   []string // the block devices there are, at most maxHave of them
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "resolve %s: %s", e.Spec, e.Reason)
	if len(e.Looked) > 0 {
		fmt.Fprintf(&b, " (looked in %s)", strings.Join(e.Looked, ", "))
	}
	switch {
	case len(e.Near) > 0:
		fmt.Fprintf(&b, "; close to it: %s", strings.Join(e.Near, ", "))
	case len(e.Have) > 0:
		fmt.Fprintf(&b, "; there are %s", strings.Join(e.Have, ", "))
	}
	return plain.Line(b.String())
}

// Is makes errors.Is(err, fs.ErrNotExist) true.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// Class makes it fault.NotFound.
func (e *NotFoundError) Class() fault.Class { return fault.NotFound }

// A SpellingError says that a specification cannot name a device at all.
type SpellingError struct {
	Spec   string
	Reason string
}

func (e *SpellingError) Error() string {
	return fmt.Sprintf("resolve %q: %s; a device is spelled /dev/sda, sda, 8:0, UUID=…, or as a path on it", e.Spec, e.Reason)
}

// Class makes it fault.WrongUse.
func (e *SpellingError) Class() fault.Class { return fault.WrongUse }

// NotBlockError says that a node exists and is no block device.
type NotBlockError struct {
	Path string
	What string // "a character device"
	Hint string // what to name instead, if that is known
}

func (e *NotBlockError) Error() string {
	s := fmt.Sprintf("resolve %s: is %s, not a block device", e.Path, e.What)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return plain.Line(s)
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// ofEnded makes the error of a process's mounts fs.ErrNotExist if the process has ended. Of one that its parent has not
// waited for, the kernel says EINVAL (mounts_open_common in fs/proc_namespace.c).
func ofEnded(err error) error {
	if errors.Is(err, unix.EINVAL) {
		return fs.ErrNotExist
	}
	return err
}
