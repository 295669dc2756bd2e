package bpf

import (
	"os"

	"golang.org/x/sys/unix"
)

// initialPIDs is the number of the host's pid namespace (PROC_PID_INIT_INO in
// include/linux/proc_ns.h).
const initialPIDs = 0xeffffffc

// InHostPIDs reports whether this process is in the host's pid namespace: programs see
// all of the host's processes, by their numbers there.
func InHostPIDs() (bool, error) {
	const own = "/proc/self/ns/pid"
	var st unix.Stat_t
	if err := unix.Stat(own, &st); err != nil {
		return false, &os.PathError{Op: "stat", Path: own, Err: err}
	}
	return st.Ino == initialPIDs, nil
}
