package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/linux/mountinfo"
)

// A Swap is one area of /proc/swaps (proc.rst).
type Swap struct {
	File string // a device's node, or a file
	Used uint64 // bytes
}

// Swaps lists the areas of swap.
func (f FS) Swaps() ([]Swap, error) {
	text, err := f.read("/proc/swaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a kernel without swap
	}
	if err != nil {
		return nil, err
	}
	var swaps []Swap
	for line := range strings.Lines(text) {
		fields := strings.Fields(line) // Filename Type Size Used Priority, sizes in KiB
		if len(fields) != 5 || fields[0] == "Filename" {
			continue
		}
		used, err := strconv.ParseUint(fields[3], 10, 53)
		if err != nil {
			return nil, fmt.Errorf("parse /proc/swaps: %q is no number", fields[3])
		}
		swaps = append(swaps, Swap{File: mountinfo.Unescape(fields[0]), Used: used << 10})
	}
	return swaps, nil
}

// Swapped is how many bytes of a process's memory are in swap (VmSwap of proc_pid_status(5); pages
// that processes share are not counted); 0 also if it has ended.
func (f FS) Swapped(pid int) uint64 {
	text, err := f.read(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "VmSwap:"); ok {
			n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 53) // what cannot be read is not known
			return n << 10
		}
	}
	return 0
}
