package blkdev

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A layer is a directory of an overlay that I/O can go to.
type layer struct{ what, dir string }

// layers lists the directories of an overlay that its I/O goes to. The upper directory takes
// all writes. In a read-only overlay the data layers have the contents of files (composefs; the
// layers above have only names and numbers), otherwise the topmost layer.
func (d overlayDirs) layers() []layer {
	if d.upper != "" {
		return []layer{{"upper directory", d.upper}}
	}
	var all []layer
	for _, dir := range d.data {
		all = append(all, layer{"read only, data directory", dir})
	}
	for _, dir := range d.lower {
		all = append(all, layer{"read only, lower directory", dir})
	}
	return all
}

// layersMost bounds the layers of one overlay that are followed.
const layersMost = 8

// onOverlay follows the directory that has an overlay's I/O. A layer of an overlay that only
// reads can be in memory, as an image's metadata is: then the next one counts.
func (r *resolver) onOverlay(ctx context.Context, c *Chain, m Mount, depth int) error {
	layers := parseOverlay(m.SuperOptions).layers()
	if len(layers) == 0 {
		return noOverlay(c.Spec, "the overlay's mount options name no directory; name a disk")
	}
	layers = layers[:min(len(layers), layersMost)]
	first, sub, err := layers[0], Chain{}, error(nil)
	for i, l := range layers {
		next, nextErr := r.onLayer(ctx, l, depth)
		if i == 0 || nextErr == nil {
			first, sub, err = next.of, next.Chain, nextErr
		}
		var none *NoBlockDeviceError
		if nextErr == nil || !errors.As(nextErr, &none) || !memory.has(none.FSType) {
			break
		}
	}
	c.add(Layer{Kind: StackLayer, Text: "overlay, " + first.what + " " + first.dir})
	c.Layers = append(c.Layers, sub.Layers...)
	c.Notes = append(c.Notes, sub.Notes...)
	c.Devices = sub.Devices
	var none *NoBlockDeviceError
	var unreached *layerError
	switch {
	case errors.As(err, &unreached):
		return noOverlay(c.Spec, fmt.Sprintf("the %s of the overlay%s", first.what, unreached.why))
	case errors.As(err, &none):
		return noOverlay(c.Spec, fmt.Sprintf("the %s of the overlay is %s, and %s", first.what, first.dir, none.Reason))
	case err != nil && isNotExist(err):
		return noOverlay(c.Spec, fmt.Sprintf("weir cannot reach the %s of the overlay, %s (it may be in another mount namespace); "+
			"name a disk, or a path on it", first.what, first.dir))
	}
	return err
}

func noOverlay(spec, reason string) error {
	return &NoBlockDeviceError{Path: spec, FSType: "overlay", Reason: reason}
}

// A layerError says why a directory of an overlay's means nothing here.
type layerError struct{ why string }

func (e *layerError) Error() string { return e.why }

type followed struct {
	of layer
	Chain
}

// onLayer follows one directory. The kernel shows its path as it was at mount time, in the
// mount namespace of the process that mounted it.
func (r *resolver) onLayer(ctx context.Context, l layer, depth int) (followed, error) {
	if plain := withoutBackslashes(l.dir); plain != l.dir && !r.there(l.dir) && r.there(plain) {
		l.dir = plain // upperdir=/a\,b is kept by the kernel as it was written
	}
	f := followed{l, Chain{Spec: l.dir}}
	switch {
	case !filepath.IsAbs(l.dir):
		return f, &layerError{fmt.Sprintf(", %s, is a relative path; name a disk, or a path on it", l.dir)}
	case r.throughProc(l.dir):
		return f, &layerError{" is " + namedByMounter(l.dir)}
	}
	dir := l.dir
	if r.fs.isHost() && !r.there(dir) {
		if theirs := through(max(r.init, 1), dir); theirs != "" {
			dir = theirs
		}
	}
	err := r.onPath(ctx, &f.Chain, dir, depth-1)
	return f, err
}

// through is a path that leads to a directory in the mount namespace of a process: of process 1, where a runtime has
// mounted its containers, also where weir is in a container itself. It is empty if there is no such directory, or a
// link on the way would lead elsewhere.
func through(pid int, dir string) string {
	top := fmt.Sprintf("/proc/%d/root", pid)
	root, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, dir, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var there, here unix.Stat_t
	if unix.Fstat(fd, &there) != nil || unix.Stat(top+dir, &here) != nil || there.Dev != here.Dev || there.Ino != here.Ino {
		return ""
	}
	return top + dir
}

func namedByMounter(path string) string {
	return path + ", which was an open file or a directory of the process that mounted it; here the name means something else, so name a disk, or a path on it"
}

// ThroughProcess reports whether a path says that it leads through what means something else
// for each process: /proc/self/fd/8, /proc/4711/root, /dev/fd/8.
func ThroughProcess(path string) bool {
	path = filepath.Clean(path)
	for _, own := range []string{"/proc/self", "/proc/thread-self", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if within(path, own) {
			return true
		}
	}
	of, err := filepath.Match("/proc/[0-9]*/*", prefixOf(path, 3))
	return err == nil && of
}

// throughProc is ThroughProcess, also for a path with a link to such a one.
func (r *resolver) throughProc(path string) bool {
	if ThroughProcess(path) || !r.fs.isHost() {
		return ThroughProcess(path)
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return errors.Is(err, unix.ELOOP)
	}
	_ = unix.Close(fd) // nothing was written
	return false
}

// prefixOf returns the first elements of an absolute path.
func prefixOf(path string, elements int) string {
	parts := strings.SplitN(path, "/", elements+2)
	return strings.Join(parts[:min(len(parts), elements+1)], "/")
}
