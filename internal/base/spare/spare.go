// Package spare gives memory back that a program has used and does not need any more: for programs that
// run for months.
package spare

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Every is how often GiveBack gives memory back. What is needed now and then for moments, such as to look
// at thousands of groups, takes as much again as a program needs between, and Go gives it back slowly.
const Every = 5 * time.Minute

// GiveBack gives memory back when a program has begun, and then again and again, until the context ends.
func GiveBack(ctx context.Context) {
	for wait := Every / 10; ; wait = Every {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		Now()
	}
}

// Now gives back memory of the heap that holds nothing, and unmaps the program itself. Its start alone, which
// initialises all that is linked, has 7 MB of it mapped that nothing uses after that; what is used is
// mapped again from the page cache, at a microsecond for 64 KiB. If the kernel refuses, it stays mapped.
func Now() {
	debug.FreeOSMemory()
	for _, m := range program() {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// program is where the file of the program itself is mapped, and nothing else than the file is there.
func program() []mapping {
	own, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	return unwritten(own)
}

// unwritten is where a file is mapped as it is: nobody can write there, and nobody has. The dynamic linker writes
// addresses into the read-only data of a position-independent program, and protects them after that (RELRO).
func unwritten(file string) (all []mapping) {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil
	}
	var m mapping
	written := true
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if next, is := mappingOf(line); is {
			if !written {
				all = append(all, m)
			}
			m, written = next, next.file != file || !next.isReadOnly()
			continue
		}
		// Pages that are no longer those of the file, in memory and in swap.
		name, size, _ := strings.Cut(line, ":")
		if (name == "Anonymous" || name == "Swap") && strings.TrimSpace(size) != "0 kB" {
			written = true
		}
	}
	if !written {
		all = append(all, m)
	}
	return all
}

// A mapping is a part of a program's memory.
type mapping struct {
	from, to uintptr
	access   string // "r-xp"
	file     string // empty: none
}

// isReadOnly reports whether nobody can write to the memory now.
func (m mapping) isReadOnly() bool {
	return strings.HasPrefix(m.access, "r") && !strings.Contains(m.access, "w")
}

// mappingOf reads a line of /proc/PID/maps, or such a line of smaps (proc_pid_maps(5), proc_pid_smaps(5)). A file that was removed since has " (deleted)"
// behind its name there, as in /proc/PID/exe.
func mappingOf(line string) (m mapping, is bool) {
	var offset, device string
	var inode uint64
	if n, _ := fmt.Sscanf(line, "%x-%x %4s %s %s %d", &m.from, &m.to, &m.access, &offset, &device, &inode); n != 6 || m.to <= m.from {
		return mapping{}, false
	}
	if inode > 0 {
		_, m.file, _ = strings.Cut(line, fmt.Sprintf(" %d ", inode))
		m.file = strings.TrimLeft(m.file, " ")
	}
	return m, true
}
