// Package launch runs a command in a cgroup of its own. It makes the group, checks that its
// rules are in force, and starts the command inside it, so that no I/O escapes. It passes on
// signals and the exit status as a shell would, and removes the group when its last process has
// exited. Under systemd the group is a transient scope.
//
// It moves no process that already runs, and removes no group that it did not make: each is on
// record (package state) before it is made.
package launch
