// Package launch runs a command in a cgroup of its own. It makes the group, checks that its
// rules are in force, and starts the command inside it, so that no I/O escapes. It passes on
// signals and the exit status as a shell would, and removes the group when its last process has
// exited. Under systemd the group is a transient scope.
//
// It moves no process that already runs. It removes only groups that are on record (package
// state), with the groups that the command made below them, and only while no process is in any
// of them.
//
// weir makes a new group below the caller's own group. Under systemd it uses the caller's slice. On
// v2 it uses the nearest group above that can give controllers. Limits of the groups above apply to
// the command on v2. Other limits of the caller do not reach it, and on v1 none does: package running
// makes the command's own limits as low. weir enables io on the way and leaves it enabled: disabling
// it could drop the rules of other groups.
//
// If a command left a megabyte or more in memory (v2), its group stays until that data is written.
// Without the group, Linux 7.2 lets the data that waits in the throttle through at once. In a scope
// the keeper waits, elsewhere a weir in the background. A new command with the same name gets the
// group at once.
//
// On v1 the kernel charges a write when it is submitted. The write can then wait in the throttle of
// a group without processes, and the kernel releases it when the group is removed. The package
// estimates how much waits (a leaky bucket on the counters) and leaves the group that long.
package launch
