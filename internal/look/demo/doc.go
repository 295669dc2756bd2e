// Package demo runs weir's main job where it can do no harm: it writes to a scratch disk,
// without and with a limit, direct and buffered, and measures each at the writer and at the
// device.
//
// It works in a mount namespace of its own, on a loop device that the kernel releases with its last
// user, on an unnamed file. So its disk needs no cleanup. Its groups are on record like those of
// weir run.
package demo
