// Package launch runs a command in a cgroup of its own: it makes the group, sees its
// rules in force, starts the command inside it (so that not one I/O escapes), passes
// signals and the exit status through as a shell would, and removes the group when
// its last process is gone. Under systemd the group is a transient scope.
//
// It refuses to move a process that already runs, and removes no group that it did
// not make: each is on record (package state) before it is made.
package launch
