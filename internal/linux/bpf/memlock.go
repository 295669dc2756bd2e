package bpf

import "golang.org/x/sys/unix"

// RaiseMemlock lets the process lock that many bytes of memory, to have maps on kernels
// that count them as such (before 5.11, 97306be45fbe). It reports whether anything was
// raised.
func RaiseMemlock(bytes uint64) bool {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur >= bytes {
		return false
	}
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: bytes, Max: max(bytes, limit.Max)}) == nil
}
