package inode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/bpf"
)

// Refused says why an inode's owner is left as it is. The most that was done to the file
// is that its dirty pages were written back, and clean ones dropped from the page cache.
type Refused struct {
	Path   string
	Reason string
	Remedy string // may be empty
	Err    error  // what the kernel answered, if it was asked
}

func (e *Refused) Error() string {
	s := "move the writeback of " + e.Path + ": " + e.Reason
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *Refused) Unwrap() error { return e.Err }

// Unmoved says that all was tried, and that the kernel kept the owner.
type Unmoved struct {
	Path   string
	Owner  Owner // as it is now
	Rounds int
}

func (e *Unmoved) Error() string {
	whose := "has no owner"
	if e.Owner.State == Owned {
		whose = "belongs to " + e.Owner.Memory.String()
	}
	return fmt.Sprintf("move the writeback of %s: after %d rounds it still %s", e.Path, e.Rounds, whose)
}

// openToMend opens a file for writing, once all that can be known without that is found
// to be in order. (To open a file of an overlay's lower layer for writing copies it.)
func (r *Reader) openToMend(ctx context.Context, before File) (*os.File, error) {
	if reason := whyNot(before); reason != "" {
		return nil, &Refused{Path: before.Path, Reason: reason}
	}
	if err := seesAll(before); err != nil {
		return nil, err
	}
	if before.layered {
		if err := r.isUpper(ctx, before); err != nil {
			return nil, err
		}
	}
	f, err := openRegular(before.Path, unix.O_RDWR|unix.O_NOATIME)
	if err != nil {
		return nil, &Refused{Path: before.Path, Reason: "it cannot be opened for writing: " + cause(err), Err: err}
	}
	if _, err := r.again(ctx, f, before); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := refuseDirectLoop(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func whyNot(before File) string {
	switch {
	case before.Owner.State == Unkept:
		return "its file system has no cgroup writeback: the kernel charges all its writeback to the root group"
	case before.Owner.State == Unknown:
		return "it is on an overlay that weir could not resolve"
	case before.ReadOnly:
		return "it is mounted read-only, or in a lower layer of an overlay"
	}
	return ""
}

// isUpper refuses a file below an overlay unless a process writes to it through the overlay, so
// that it is in the upper layer.
func (r *Reader) isUpper(ctx context.Context, f File) error {
	all, err := r.openers(ctx, f.identity)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Beneath && o.Writes() {
			return nil
		}
	}
	return &Refused{Path: f.Path, Reason: "it may be in a lower layer of an overlay: no process has it open for writing, and this kernel does not tell", Remedy: "name the file in the upper layer"}
}

// seesAll refuses if weir cannot see all processes: an unseen one could have the file open for
// direct I/O.
func seesAll(f File) error {
	if sees, err := bpf.InHostPIDs(); err != nil || sees {
		return err
	}
	return &Refused{Path: f.Path, Reason: "weir cannot see from this pid namespace which other processes have it open", Remedy: "run weir on the host, or in a container that shares the host's pid namespace"}
}

// refuseDirectLoop looks for a loop device on the file that does direct I/O: the kernel
// has the file open for it, and no process needs to.
func refuseDirectLoop(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &os.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	loops, err := filepath.Glob("/sys/block/loop*/loop/dio")
	if err != nil {
		return err
	}
	for _, dio := range loops {
		text, err := os.ReadFile(dio)
		if err != nil || string(text) != "1\n" {
			continue // it was taken down meanwhile, or does no direct I/O
		}
		node := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(dio)))
		info, err := loopInfo(node)
		if errors.Is(err, unix.ENXIO) {
			continue
		}
		if err != nil {
			return &Refused{Path: f.Name(), Reason: "cannot tell whether " + node + " does direct I/O on it: " + cause(err), Err: err}
		}
		if info.Device == uint64(st.Dev) && info.Inode == st.Ino {
			return &Refused{Path: f.Name(), Reason: node + " does direct I/O on it, which must not mix with dirty pages of the same file"}
		}
	}
	return nil
}

func loopInfo(node string) (*unix.LoopInfo64, error) {
	fd, err := retry(func() (int, error) { return unix.Open(node, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return unix.IoctlLoopGetStatus64(fd)
}

// cause is the kernel's answer alone, where the rest of the message is said already.
func cause(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
