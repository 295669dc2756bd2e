// Package pacer holds the buffered writes of groups where the kernel does not: on cgroup v1, on
// file systems without cgroup writeback, and in files of other groups. It pauses the groups'
// processes.
//
// The kernel counts for each process how many bytes it dirtied (write_bytes of /proc/PID/io).
// The pacer resumes a group's processes for a moment, pauses them, counts what they wrote, and
// leaves them paused until the average is back at the limit. One process paces all groups, on a
// real-time thread where that is allowed. The kernel's own rule holds direct and synchronous
// writes; the pacer does not count them again.
//
// A pause stops the whole group, its computing too. No process is paused in the middle of a
// system call: a single write(2) completes, and the group is paused for all of it afterwards.
package pacer
