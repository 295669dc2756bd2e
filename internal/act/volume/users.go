package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/mountinfo"
)

// A BusyError means that a volume is in use.
type BusyError struct {
	Volume Volume
	By     string
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("volume %s is in use by %s; stop that first", e.Volume.Name, e.By)
}

// busy looks for mounts of a volume besides its own: a container's keep it mounted when its
// own is gone. Copies of its own in other namespaces that follow this one's go with it.
func (s Store) busy(v Volume, at Where) error {
	group := "" // of mounts that follow each other
	for _, m := range mountsOn(os.Getpid(), at.Mount.Number) {
		for _, word := range strings.Fields(m.Optional) {
			if g, is := strings.CutPrefix(word, "shared:"); is && m.ID == at.Mount.ID {
				group = g
			}
		}
	}
	seen := map[string]bool{}
	for _, pid := range processes() {
		space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil || seen[space] {
			continue // it has ended
		}
		seen[space] = true
		for _, m := range mountsOn(pid, at.Mount.Number) {
			words := strings.Fields(m.Optional)
			follows := group != "" && (slices.Contains(words, "shared:"+group) || slices.Contains(words, "master:"+group))
			if m.ID == at.Mount.ID || follows && m.Point == at.Mount.Point && m.Root == "/" {
				continue
			}
			return &BusyError{v, fmt.Sprintf("%s, which has it mounted at %s", describe(pid), m.Point)}
		}
	}
	return nil
}

func mountsOn(pid int, dev blkdev.Number) []mountinfo.Info {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return nil // it has ended
	}
	defer f.Close()
	var found []mountinfo.Info
	_, err = mountinfo.Read(f, func(i mountinfo.Info) bool {
		if i.Major == dev.Major && i.Minor == dev.Minor {
			found = append(found, i)
		}
		return false
	})
	if err != nil {
		return nil
	}
	return found
}

// inUse says which processes have something open on a volume that the kernel does not unmount.
func (s Store) inUse(v Volume, at Where, cause error) error {
	var users []string
	for _, pid := range processes() {
		dir := fmt.Sprintf("/proc/%d/", pid)
		names := []string{dir + "cwd", dir + "root", dir + "exe"}
		if open, err := os.ReadDir(dir + "fd"); err == nil {
			for _, e := range open {
				names = append(names, filepath.Join(dir, "fd", e.Name()))
			}
		}
		for _, name := range names {
			var st unix.Stat_t
			if unix.Stat(name, &st) == nil && unix.Major(st.Dev) == at.Mount.Number.Major && unix.Minor(st.Dev) == at.Mount.Number.Minor {
				users = append(users, describe(pid))
				break
			}
		}
		if len(users) == 3 {
			break
		}
	}
	if len(users) == 0 {
		return fmt.Errorf("unmount %s: %w", at.Mount.Point, cause)
	}
	return &BusyError{v, strings.Join(users, ", ")}
}

func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// describe names a process.
func describe(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
}
