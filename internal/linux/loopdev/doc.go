// Package loopdev makes block devices of files: loop(4). The kernel releases a device with its last
// user (LO_FLAGS_AUTOCLEAR), so a process that dies before it has mounted one leaves none behind.
// I/O on the file is direct where its file system can do that. The kernel then charges the I/O to
// the group that caused it, and keeps no second copy in memory.
package loopdev
