// Package scratch gives a process a disk of its own for a while: an ext4 file system
// on a loop device on a file without a name, mounted where only the process and its
// children see it.
//
// Nothing has to be cleaned up, whatever ends the process: the mount is in a mount
// namespace of its own and goes with the last process in it, the loop device is
// released with its last user (LO_FLAGS_AUTOCLEAR, loop(4)), and the file never had
// a name (O_TMPFILE) or has lost it before anything is written.
package scratch
