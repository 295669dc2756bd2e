// Package pacer holds the buffered writes of groups by stopping their processes, where the
// kernel does not: on cgroup v1, and where a file system has no cgroup writeback.
//
// The kernel counts for each process what it has made dirty (write_bytes of
// /proc/PID/io). The pacer lets a group's processes run for a moment, stops them, counts
// what they have written, and leaves them stopped until the limit has caught up. One
// process paces all groups: a real-time thread where that is allowed. Direct and
// synchronous writes are the kernel's own rule's to hold, and are not counted twice.
//
// The whole group stops, its computing too; and nobody is stopped in the middle of a
// system call: what one write(2) makes dirty is counted as a whole, and paid for after.
package pacer
