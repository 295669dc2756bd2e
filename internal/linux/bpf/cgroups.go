package bpf

import (
	"os"

	"golang.org/x/sys/unix"
)

// initialCgroups is the number of the host's cgroup namespace (PROC_CGROUP_INIT_INO in
// include/linux/proc_ns.h).
const initialCgroups = 0xeffffffb

// InHostCgroups reports whether this process is in the host's cgroup namespace: programs see
// the host's groups, at the levels that they have there.
func InHostCgroups() (bool, error) {
	const own = "/proc/self/ns/cgroup"
	var st unix.Stat_t
	if err := unix.Stat(own, &st); err != nil {
		return false, &os.PathError{Op: "stat", Path: own, Err: err}
	}
	return st.Ino == initialCgroups, nil
}
