// Package containerd resolves targets of the kind containerd:NAMESPACE/ID: a running container
// of containerd, by its namespace and its id, or the beginning of the id. CRI-O's containers, which
// have no namespace, are in k8s.io, as those of pods are in containerd.
//
// It asks containerd for the container's first process (services.tasks.v1, Get; CRI-O over the CRI), and
// uses only the process number from the answer. The group is the one that the kernel reports for
// that process.
package containerd
