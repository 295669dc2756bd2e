// Package engine resolves targets of the kinds docker:NAME and podman:NAME: a running
// container by its name, its id, or the beginning of one, and the limits that its engine
// has on record for it.
//
// It asks the engine over its socket, for one container (Docker's Engine API, "Inspect a
// container", which Podman serves too), and takes only a process's number from the
// answer: the group is the one that the kernel has that process in. It speaks HTTP
// itself: Docker's client, and net/http, would slow down the start of every weir.
package engine
