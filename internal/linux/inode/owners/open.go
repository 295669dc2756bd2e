package owners

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/inode"
)

// pathsAtOnce bounds how many files are open at once.
const pathsAtOnce = 128

// OfPaths reports which groups own the writeback of files. It opens each file for reading, but
// does not read it, and opens only regular files. The answer has the paths' order. It refuses a
// path whose last element is a symbolic link, except /proc/PID/fd/N.
func (r *Reader) OfPaths(ctx context.Context, paths []string) ([]inode.File, error) {
	var all []inode.File
	for len(paths) > 0 {
		n := min(len(paths), pathsAtOnce)
		files, err := r.ofPaths(ctx, paths[:n])
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			all = append(all, f.File)
		}
		paths = paths[n:]
	}
	return all, nil
}

func (r *Reader) ofPaths(ctx context.Context, paths []string) ([]file, error) {
	handles := make([]*os.File, len(paths))
	for i, p := range paths {
		f, err := openRegular(p, unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		handles[i] = f
	}
	open, err := r.openIn(ctx, []int{os.Getpid()})
	if err != nil {
		return nil, err
	}
	byFD := make(map[int]file, len(open))
	for _, f := range open {
		byFD[f.FD] = f
	}
	files := make([]file, len(handles))
	for i, h := range handles {
		f, ok := byFD[int(h.Fd())]
		if !ok {
			return nil, fmt.Errorf("read the owner of %s: the kernel did not list it", h.Name())
		}
		f.Path, f.PID, f.FD = h.Name(), 0, 0
		files[i] = f
	}
	return files, nil
}

// OfProcesses reports which groups own the writeback of the regular files that processes have
// open, each file once for each process. Processes that are gone have none.
func (r *Reader) OfProcesses(ctx context.Context, pids []int) ([]inode.File, error) {
	files, err := r.openIn(ctx, pids)
	if err != nil {
		return nil, err
	}
	var all []inode.File
	for _, f := range files {
		// Without a name (the process has ended, or closed the file) it is told of
		// all the same.
		f.Path, _ = os.Readlink(f.Handle())
		all = append(all, f.File)
	}
	return all, nil
}

// openRegular opens a file only if it is a regular one: opening another kind can wait
// (a fifo) or do something (a device).
func openRegular(name string, flags int) (*os.File, error) {
	look := unix.O_PATH | unix.O_CLOEXEC
	if ok, _ := path.Match("/proc/*/fd/*", path.Clean(name)); !ok {
		look |= unix.O_NOFOLLOW
	}
	fd, err := retry(func() (int, error) { return unix.Open(name, look, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	fd, err = retry(func() (int, error) {
		return unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

var errNotRegular = errors.New("not a regular file")

func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}
