// Package engine resolves targets of the kinds docker:NAME and podman:NAME: a running container
// by its name, its id, or the beginning of its id, and the limits that its engine stores for
// it.
//
// It asks the engine over its socket, for one container (Docker's Engine API, "Inspect a
// container", which Podman serves too), and uses only a process number from the answer. The
// group is the one that the kernel reports for that process, if it is named after the
// container's id. The package writes HTTP/1.0 itself: net/http alone adds half a millisecond to
// the start of each weir, and Docker's client two.
package engine
