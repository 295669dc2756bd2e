package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/tool"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// A format is a file system that a volume can have.
type format struct {
	name  string
	least uint64 // bytes
	mkfs  []string
	grow  func(node, dir string) []string // makes it as large as its device, while it is mounted
	pack  string                          // the package that has the programs
}

var formats = []format{
	// Everything is initialised when it is made, so that nothing but its users writes later.
	{"ext4", 16 << 20, []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"},
		func(node, _ string) []string { return []string{"resize2fs", node} }, "e2fsprogs"},
	{"xfs", 300 << 20, []string{"mkfs.xfs", "-q", "-f", "-K"},
		func(_, dir string) []string { return []string{"xfs_growfs", dir} }, "xfsprogs"},
}

// Formats are the names of file systems that a volume can have, the usual one first.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

func formatOf(name string) (format, bool) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return format{}, false
	}
	return formats[i], true
}

// newImage makes an unnamed file in dir, of size bytes that are all allocated, with a file
// system on it. Until link names it, the file vanishes with its last descriptor.
func newImage(ctx context.Context, dir string, size uint64, f format) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		return nil, fault.With(&fault.Unsupported{Feature: "make a volume's file in " + dir, Reason: "its file system cannot make an unnamed file (O_TMPFILE)"}, fault.Remedy{Do: fault.NameOtherPlace})
	}
	if err != nil {
		return nil, fmt.Errorf("make a file in %s: %w", dir, err)
	}
	image := os.NewFile(uintptr(fd), filepath.Join(dir, "image"))
	keepInPlace(fd)
	if err := fill(image, dir, size); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	// The descriptor is the child's third.
	if err := runTool(ctx, f.pack, append(slices.Clone(f.mkfs), "/proc/self/fd/3"), image); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	if err := errors.Join(fill(image, dir, size), image.Sync()); err != nil { // mkfs may have let go of some
		return nil, errors.Join(err, image.Close())
	}
	return image, nil
}

// keepInPlace has btrfs write over what a file has instead of beside it: otherwise the space
// that the file has taken is not what it writes to. Other file systems refuse it.
func keepInPlace(fd int) {
	const noCOW = 0x00800000 // FS_NOCOW_FL (include/uapi/linux/fs.h)
	if flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|noCOW)
	}
}

// fill takes the space of a file, up to size bytes, from its file system. What the file has
// is kept.
func fill(image *os.File, dir string, size uint64) error {
	var st unix.Stat_t
	var room unix.Statfs_t
	if err := errors.Join(unix.Fstat(int(image.Fd()), &st), unix.Fstatfs(int(image.Fd()), &room)); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if err := fits(uint64(st.Blocks)*512, size, room, dir); err != nil {
		return err
	}
	switch err := unix.Fallocate(int(image.Fd()), 0, 0, int64(size)); {
	case errors.Is(err, unix.EOPNOTSUPP):
		return fault.With(&fault.Unsupported{Feature: fmt.Sprintf("allocate %s in %s", sizeText(size), dir), Reason: "its file system cannot allocate space in advance (fallocate)"}, fault.Remedy{Do: fault.NameOtherPlace})
	case err != nil:
		return fmt.Errorf("allocate %s in %s: %w", sizeText(size), dir, err)
	}
	return nil
}

// fits refuses a size for which there is no room beside what a file has.
func fits(has, size uint64, room unix.Statfs_t, dir string) error {
	free := room.Bavail * uint64(room.Bsize)
	if has < size && free < size-has {
		return fmt.Errorf("allocate %s in %s: only %s are free there; choose a smaller size, or make room", sizeText(size), dir, sizeText(free))
	}
	return nil
}

func sizeText(n uint64) string { return limit.FormatMeasured(float64(n)) }

// runTool runs a program of a package, with the file, if there is one, as its third descriptor.
func runTool(ctx context.Context, pack string, words []string, file *os.File) error {
	name, err := exec.LookPath(words[0])
	if err != nil {
		if name, err = exec.LookPath(filepath.Join("/usr/sbin", words[0])); err != nil {
			return &fault.Unsupported{Feature: words[0], Reason: "the program is not installed", Remedy: "install " + pack}
		}
	}
	cmd := exec.CommandContext(ctx, name, words[1:]...)
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	if out, said, err := tool.Run(cmd); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return fmt.Errorf("%s: %w: %s", words[0], err, bytes.TrimSpace(append(out, said...)))
	}
	return nil
}
