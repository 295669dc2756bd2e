package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// disksNeed is what there must be of memory for each guest at once, for guests' disks to
// be in it: two were seen to take 9 GiB at most, with what they have as their memory.
const disksNeed = 6 << 30

// disksParent is where guests' disks go: into memory where there is enough, because what
// the host's own disk is busy with is then not measured; else where temporary files do.
func disksParent(guests int) string {
	if inMemory(guests) {
		return shm
	}
	return os.TempDir()
}

const shm = "/dev/shm"

// inMemory reports whether there is enough of it for the disks of so many guests.
func inMemory(guests int) bool {
	need := uint64(guests) * disksNeed
	var fs unix.Statfs_t
	if err := unix.Statfs(shm, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < need {
		return false
	}
	return memoryAvailable() >= need
}

// withDisks is how many guests run at once of those that fit: no more than there are
// processors, if only the disks of so many fit into memory.
func withDisks(guests, processors int, fit func(guests int) bool) int {
	if guests > processors && !fit(guests) && fit(processors) {
		return processors
	}
	return guests
}

// memoryAvailable is MemAvailable of proc_meminfo(5), in bytes; 0 if it is not known.
func memoryAvailable() (bytes uint64) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	if _, err := fmt.Sscanf(rest, "%d kB", &bytes); err != nil {
		return 0
	}
	return bytes << 10
}
