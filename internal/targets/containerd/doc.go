// Package containerd resolves targets of the kind containerd:NAMESPACE/ID: a running container
// of containerd, by its namespace and its id, or the beginning of the id.
//
// It asks containerd for the container's first process (services.tasks.v1, Get), and uses only
// the process number from the answer. The group is the one that the kernel reports for that
// process.
package containerd
