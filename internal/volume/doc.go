// Package volume keeps volumes: file systems on block devices of their own, so that a limit on
// the device is a limit on all that is written there. A volume is a loop device on a file with
// all its space taken in advance, or a mount that had a device of its own before (adopted).
//
// On cgroup v1 a volume's limit is a rule of the root group for that device, which holds all
// writeback to it and the root group's own I/O, and the bounds of the device's dirty pages
// (sysfs-class-bdi), which hold the writers: no more than half a second of the limit waits in
// memory. Direct and synchronous I/O of other groups takes a rule of theirs as well. On v2,
// whose root group has no rules, the bounds are all that is set here.
//
// A volume is on record in a file named after it, that outlives a boot. A change that takes
// several steps has the record under another name until it is done, and whoever finds one with
// no weir at work takes a making back and a deletion to its end.
//
// It knows nothing of who uses a volume, and sets no limits of theirs.
package volume
