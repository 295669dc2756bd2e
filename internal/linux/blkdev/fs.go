package blkdev

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// An FS reads /proc, /sys and /dev below a root. The zero FS is the host's "/".
type FS struct {
	root string
	once once // nil: see ForMany
}

// New returns an FS below root: "/" for the host, another directory for a fixture
// or for a host's tree that is mounted inside a container.
func New(root string) FS {
	if root == "" {
		return FS{}
	}
	if root = filepath.Clean(root); root == "/" {
		return FS{}
	}
	return FS{root: root}
}

// isHost reports whether paths mean what they mean to this process, so that stat
// can be believed.
func (fs FS) isHost() bool { return fs.root == "" }

// at is where the file that the root's own paths call p can be opened.
func (fs FS) at(p string) string {
	if fs.isHost() {
		return p
	}
	return filepath.Join(fs.root, filepath.Join("/", p))
}

// maxAttr bounds the size of a sysfs attribute; the kernel's own bound is one page.
const maxAttr = 4096

// attr reads a small file of one line, without the newline. An attribute of sysfs
// comes with one read, so that three system calls are enough: os.ReadFile takes six.
func (fs FS) attr(p string) (string, error) {
	p = fs.at(p)
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: p, Err: err}
	}
	defer unix.Close(fd)
	var b [maxAttr]byte
	n, err := unix.Read(fd, b[:])
	if err != nil {
		return "", &os.PathError{Op: "read", Path: p, Err: err}
	}
	return strings.TrimSuffix(string(b[:n]), "\n"), nil
}

// maxLinks is the kernel's own bound on symlinks in one path (MAXSYMLINKS).
const maxLinks = 40

// real follows every symlink of p inside the root, as a chroot there would. When
// something on the way does not exist it returns as far as it came, the rest
// appended, and an error that is os.ErrNotExist.
func (fs FS) real(p string) (string, error) {
	rest := strings.Split(filepath.Clean("/"+p), "/")
	done, links := "/", 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		target, err := os.Readlink(fs.at(next))
		switch {
		case errors.Is(err, unix.EINVAL): // it exists, and is no symlink
			done = next
			continue
		case err != nil:
			return filepath.Join(next, filepath.Join(rest...)), err
		}
		if links++; links > maxLinks {
			return p, &os.PathError{Op: "readlink", Path: p, Err: unix.ELOOP}
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}
