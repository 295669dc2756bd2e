package blkdev

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/linux/mountinfo"
)

// A Mount is one line of /proc/PID/mountinfo (proc.rst, 3.5).
type Mount struct {
	ID           int    `json:"id"`
	Parent       int    `json:"parent"`
	Number       Number `json:"number"` // major 0: anonymous, no device has it
	Root         string `json:"root"`   // the directory of the file system that is mounted
	Point        string `json:"point"`
	FSType       string `json:"fstype"`
	Source       string `json:"source"`
	Options      string `json:"options"`       // of this mount, escaped
	SuperOptions string `json:"super_options"` // of the file system, escaped
}

// SuperOption returns the value of an option of the file system, unescaped.
func (m Mount) SuperOption(key string) (string, bool) { return option(m.SuperOptions, key) }

// DataJournal reports whether the file system writes all data through its journal, and
// direct I/O through the page cache: ext4 with data=journal (ext4.rst, "data=journal").
func (m Mount) DataJournal() bool {
	mode, _ := m.SuperOption("data")
	return m.FSType == "ext4" && mode == "journal"
}

// DAX reports whether all files are read and written without the page cache and without requests
// to the device (Documentation/filesystems/dax.rst). With dax=inode each file may say so itself,
// which is not looked at.
func (m Mount) DAX() bool {
	return slices.ContainsFunc(splitOptions(m.SuperOptions), func(o string) bool { return o == "dax" || o == "dax=always" })
}

// text is "mount /srv", and what part of its file system is seen there if not all.
func (m Mount) text() string {
	s := "mount " + m.Point
	if m.Root == "/" {
		return s
	}
	if sub, ok := m.SuperOption("subvol"); ok && sub == m.Root {
		return s + " (subvolume " + m.Root + ")"
	}
	return s + " (bind of " + m.Root + ")"
}

// mountsMost bounds how much of one list of mounts is kept, in bytes: a user with a mount
// namespace can make it arbitrarily long.
const mountsMost = 64 << 20

// mountFile is the mountinfo of a process. Below another root there is no self:
// there, init stands for the root as a whole.
func (fs FS) mountFile(pid int) string {
	switch {
	case pid != 0:
		return "/proc/" + strconv.Itoa(pid) + "/mountinfo"
	case fs.isHost():
		return "/proc/self/mountinfo"
	}
	return "/proc/1/mountinfo"
}

// mounts reads the mounts of a process that keep wants, until it says stop. What of them
// cannot be read is left out.
func (fs FS) mounts(pid int, keep func(Mount) (want, stop bool)) ([]Mount, error) {
	found, _, err := fs.mountsLeft(pid, keep)
	return found, err
}

// mountsLeft is mounts, and reports what is left out.
func (fs FS) mountsLeft(pid int, keep func(Mount) (want, stop bool)) ([]Mount, mountinfo.Left, error) {
	name := fs.mountFile(pid)
	open := os.Open
	if !fs.isHost() {
		open = peek.Open // a copy can have a FIFO there
	}
	f, err := open(fs.at(name))
	if err != nil {
		if pid != 0 {
			err = ofEnded(err)
		}
		if pid != 0 && isNotExist(err) {
			return nil, mountinfo.Left{}, fmt.Errorf("read mounts of process %d: no such process: %w", pid, err)
		}
		return nil, mountinfo.Left{}, fmt.Errorf("read mounts: %w", err)
	}
	defer f.Close()
	found, left, err := parseMounts(f, keep)
	if err != nil {
		return nil, left, fmt.Errorf("read %s: %w", name, err)
	}
	return found, left, nil
}

func parseMounts(in io.Reader, keep func(Mount) (want, stop bool)) ([]Mount, mountinfo.Left, error) {
	var found []Mount
	var over mountinfo.Left
	lines, bytes := 0, 0
	left, err := mountinfo.Read(in, func(i mountinfo.Info) bool {
		lines++
		m := fromInfo(i)
		want, stop := keep(m)
		if !want {
			return stop
		}
		if bytes += len(m.Root) + len(m.Point) + len(m.Source) + len(m.Options) + len(m.SuperOptions); bytes > mountsMost {
			over.Add(lines, "the lines before it have more than 64 MiB")
			return stop
		}
		found = append(found, m)
		return stop
	})
	if left.Lines == 0 {
		left = over
	} else {
		left.Lines += over.Lines
	}
	return found, left, err
}

func fromInfo(i mountinfo.Info) Mount {
	return Mount{
		ID: i.ID, Parent: i.Parent,
		Number: Number{Major: i.Major, Minor: i.Minor},
		Root:   i.Root, Point: i.Point,
		FSType: i.FSType, Source: i.Source,
		Options: i.Options, SuperOptions: i.SuperOptions,
	}
}

func all(Mount) (want, stop bool) { return true, false }

// covering returns the mount that a path without symlinks is on, by going down from
// the root as the kernel does: of the mounts on the present one, the nearest to it
// on the way, and on one point the last mounted. A plain longest prefix would be
// wrong where a later mount hides the point of an earlier one.
func covering(mounts []Mount, path string) (Mount, bool) {
	at := -1
	known := make(map[int]bool, len(mounts))
	for _, m := range mounts {
		known[m.ID] = true
	}
	for i, m := range mounts {
		if m.Point == "/" && (!known[m.Parent] || m.Parent == m.ID) {
			at = i
		}
	}
	if at < 0 {
		return longest(mounts, path)
	}
	for range mounts { // each step goes to a mount not seen before
		next := -1
		for i, m := range mounts {
			if i != at && m.Parent == mounts[at].ID && within(path, m.Point) &&
				(next < 0 || len(m.Point) <= len(mounts[next].Point)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		at = next
	}
	return mounts[at], true
}

// longest is for a list without a root (of a fixture, or a chroot that is not on a mount of its
// own): it returns the longest mount point before path, the last mounted first.
func longest(mounts []Mount, path string) (best Mount, ok bool) {
	for _, m := range mounts {
		if within(path, m.Point) && (!ok || len(m.Point) >= len(best.Point)) {
			best, ok = m, true
		}
	}
	return best, ok
}

// within reports whether path is dir or below it. Both are clean and absolute.
func within(path, dir string) bool {
	if dir == "/" || path == dir {
		return true
	}
	return strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}

// Mounts lists the mounts that a process sees, in the order in which the kernel does; 0 is
// this process, or below another root its init.
func (fs FS) Mounts(pid int) ([]Mount, error) { return fs.mounts(pid, all) }
