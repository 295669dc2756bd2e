// Package containerd resolves targets of the kind containerd:NAMESPACE/ID: a running
// container of containerd's, by its namespace and its id, or the beginning of that.
//
// It asks containerd for the container's first process (services.tasks.v1, Get), and
// takes only its number from the answer: the group is the one that the kernel has that
// process in.
package containerd
