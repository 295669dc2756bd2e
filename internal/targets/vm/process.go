package vm

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
)

// firstChild is the first process that a process has started; in LXC that is the container's
// own first process. 0: there is none.
func firstChild(root string, pid int) int {
	number := strconv.Itoa(pid)
	text, err := os.ReadFile(filepath.Join(root, "proc", number, "task", number, "children"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	child, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return child
}

// openFiles are the files and devices that QEMU does a domain's I/O on.
type openFiles struct{ written, read []string }

// openDisks lists the disks that a process has open: those that it may write, and those that it
// only reads (backing images and virtual CDs). Memory, shared or not, firmware with its
// variables, and the program's own files are not disks. A file that cannot be read is left out,
// and never hides the others.
func openDisks(root string, pid int) (all openFiles, err error) {
	dir := filepath.Join(root, "proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return all, fmt.Errorf("find the disks of process %d: %w", pid, err)
	}
	for _, e := range entries {
		file := filepath.Join(dir, "fd", e.Name())
		name, err := os.Readlink(file)
		if err != nil || !strings.HasPrefix(name, "/") || isNoDisk(name) {
			continue
		}
		if root != "/" { // of a copy of a host the links are there, and name its files
			file = filepath.Join(root, name)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Type() != fs.ModeDevice && !info.Mode().IsRegular() || root == "/" && inMemory(file) || isDeleted(root, name, info) {
			continue
		}
		switch mode, known := modeOf(filepath.Join(dir, "fdinfo", e.Name())); {
		case known && mode == unix.O_RDWR:
			all.written = append(all.written, name)
		case known && mode == unix.O_RDONLY:
			all.read = append(all.read, name)
		}
	}
	slices.Sort(all.written)
	slices.Sort(all.read)
	all.written = slices.Compact(all.written)
	all.read = slices.DeleteFunc(slices.Compact(all.read), func(name string) bool { return slices.Contains(all.written, name) })
	return all, nil
}

// noDisks are prefixes of files that QEMU has open but that are not disks of a domain: memory,
// firmware and its variables, the program's own files. Images on a USB disk are below /run/media.
var noDisks = []string{"/memfd:", "/dev/shm/", "/dev/hugepages", "/run/libvirt/", "/run/shm/", "/proc/", "/sys/", "/usr/share/", "/usr/lib", "/lib/", "/etc/", "/anon_hugepage",
	"/var/lib/libvirt/qemu/nvram/", "/var/lib/libvirt/qemu/ram/", "/var/lib/libvirt/qemu/save/", "/var/log/"}

func isNoDisk(name string) bool {
	return slices.ContainsFunc(noDisks, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// isDeleted reports whether a file has lost the name under which it is open. The kernel says so after
// that name, and a file can be called so too.
func isDeleted(root, name string, file fs.FileInfo) bool {
	if !strings.HasSuffix(name, " (deleted)") {
		return false
	}
	called, err := os.Stat(filepath.Join(root, name))
	return err != nil || !os.SameFile(called, file)
}

// inMemory reports whether a file is on a file system that keeps files in memory.
func inMemory(file string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(file, &st); err != nil {
		return false
	}
	return slices.Contains([]int64{unix.TMPFS_MAGIC, unix.HUGETLBFS_MAGIC, unix.RAMFS_MAGIC}, int64(st.Type))
}

// modeOf reads how a descriptor was opened: O_RDONLY, O_WRONLY or O_RDWR.
func modeOf(fdinfo string) (mode int, known bool) {
	text, err := peek.File(fdinfo, peek.Short)
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(text), "flags:")
	octal, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	flags, err := strconv.ParseInt(octal, 8, 64)
	return int(flags) & unix.O_ACCMODE, err == nil
}
