package vm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// firstChild is the first process that one has started, in LXC the container's own
// first; 0 if it has none.
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

// openDisks lists what a process has open for reading and writing that can be a disk:
// block devices, and files with a name. A virtual machine has its images open as long as
// it runs.
func openDisks(root string, pid int) ([]string, error) {
	dir := filepath.Join(root, "proc", strconv.Itoa(pid))
	entries, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		return nil, fmt.Errorf("find the disks of process %d: %w", pid, err)
	}
	var disks []string
	for _, e := range entries {
		file := filepath.Join(dir, "fd", e.Name())
		name, err := os.Readlink(file)
		if err != nil || !strings.HasPrefix(name, "/") || strings.HasSuffix(name, " (deleted)") || strings.HasPrefix(name, "/memfd:") {
			continue
		}
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("find the disks of process %d: %w", pid, err)
		}
		block := info.Mode().Type() == fs.ModeDevice
		if (block || info.Mode().IsRegular()) && writes(filepath.Join(dir, "fdinfo", e.Name())) {
			disks = append(disks, name)
		}
	}
	slices.Sort(disks)
	return slices.Compact(disks), nil
}

// writes reports whether a descriptor is for reading and writing (proc_pid_fdinfo(5)).
// Logs are for writing only, and firmware for reading.
func writes(fdinfo string) bool {
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), "flags:")
	octal, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	flags, err := strconv.ParseInt(octal, 8, 64)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}
