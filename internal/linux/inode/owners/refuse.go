package owners

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/inode"
)

// openToMend opens a file for writing, once all that can be known without that is found
// to be in order. (To open a file of an overlay's lower layer for writing copies it.)
func (r *Reader) openToMend(ctx context.Context, before file) (*os.File, error) {
	if reason := whyNot(before.File); reason != "" {
		return nil, &inode.Refused{Path: before.Path, Reason: reason}
	}
	if err := seesAll(before.File); err != nil {
		return nil, err
	}
	if before.layered {
		if err := r.isUpper(ctx, before); err != nil {
			return nil, err
		}
	}
	f, err := openRegular(before.Path, unix.O_RDWR|unix.O_NOATIME)
	if err != nil {
		return nil, &inode.Refused{Path: before.Path, Reason: "it cannot be opened for writing: " + cause(err), Err: err}
	}
	if _, err := r.again(ctx, f, before); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := refuseDirectLoop(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func whyNot(before inode.File) string {
	switch {
	case before.Owner.State == inode.Unkept:
		return "its file system has no cgroup writeback: the kernel charges all its writeback to the root group"
	case before.Owner.State == inode.Unknown:
		return "it is on an overlay that weir could not resolve"
	case before.ReadOnly:
		return "it is mounted read-only, or in a lower layer of an overlay"
	}
	return ""
}

// isUpper refuses a file below an overlay unless a process writes to it through the overlay, so
// that it is in the upper layer.
func (r *Reader) isUpper(ctx context.Context, f file) error {
	all, err := r.openers(ctx, f.identity)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Beneath && o.Writes() {
			return nil
		}
	}
	return &inode.Refused{Path: f.Path, Reason: "it may be in a lower layer of an overlay: no process has it open for writing, and this kernel does not tell", Remedy: "name the file in the upper layer"}
}

// seesAll refuses if weir cannot see all processes: an unseen one could have the file open for
// direct I/O.
func seesAll(f inode.File) error {
	if sees, err := bpf.InHostPIDs(); err != nil || sees {
		return err
	}
	return &inode.Refused{Path: f.Path, Reason: "weir cannot see from this pid namespace which other processes have it open", Remedy: "run weir on the host, or in a container that shares the host's pid namespace"}
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
			return &inode.Refused{Path: f.Name(), Reason: "cannot tell whether " + node + " does direct I/O on it: " + cause(err), Err: err}
		}
		if info.Device == uint64(st.Dev) && info.Inode == st.Ino {
			return &inode.Refused{Path: f.Name(), Reason: node + " does direct I/O on it, which must not mix with dirty pages of the same file"}
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
