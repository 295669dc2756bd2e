// Package volume manages volumes: file systems on block devices of their own, so that a limit
// on the device is a limit on everything that is written there. A volume is a loop device on a
// file with all its space allocated in advance, or a mount that already had a device of its own
// (adopted).
//
// On cgroup v1 a volume's limit has two parts. A rule of the root group for the device holds
// all writeback to it and the root group's own I/O. The bounds on the device's dirty pages
// (sysfs-class-bdi) hold the writers: no more than half a second of the limit waits in memory.
// Direct and synchronous I/O of other groups needs a rule on those groups. On v2, where the
// root group has no rules, weir sets only the bounds here.
//
// A volume's record is a file with its name, which survives boots. During a change of several
// steps the record has another name. If no weir is at work, the next one takes an interrupted
// creation back and completes an interrupted deletion.
//
// Each verb of the Store has a method that lists its steps (CreateSteps of Create), which changes
// nothing and refuses what the verb refuses.
//
// The package does not know who uses a volume, and sets no limits on users.
//
// The file has no name until the record (in /var/lib/weir/volumes) has its inode, so weir unlinks
// only its own files. A volume gets a new loop device each time (from 256 on), so it carries no
// rule or bound of another owner. The kernel releases the device with its last user. The device has
// its limit before it is mounted. Discards are off, so the space stays allocated. (Before Linux
// 5.19 the kernel trims it anyway if somebody runs fstrim there.)
package volume
