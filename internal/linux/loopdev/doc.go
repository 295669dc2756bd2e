// Package loopdev makes block devices of files: loop(4). A device is released with its last
// user (LO_FLAGS_AUTOCLEAR), so that a process that dies before it has mounted one leaves
// none in use. I/O on the file is direct where its file system can: the kernel then charges
// it to the group that it is for, and keeps no second copy in memory.
package loopdev
