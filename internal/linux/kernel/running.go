package kernel

import "golang.org/x/sys/unix"

// Running is the release of the kernel that runs this process, as uname(2) has it; "unknown" if
// that fails.
func Running() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
