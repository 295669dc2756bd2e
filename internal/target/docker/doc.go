// Package docker resolves targets of the kind docker:NAME: a running container by its
// name, its id, or the beginning of one, and the limits that Docker has on record for it.
//
// It asks the daemon over its socket, for one container (Engine API, "Inspect a
// container"), and takes only a process's number from the answer: the group is the one
// that the kernel has that process in. It speaks HTTP itself: Docker's client, and
// net/http, would slow down the start of every weir.
package docker
