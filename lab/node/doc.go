// Package node makes a full guest a node of Kubernetes that has no cluster (New), or a cluster of one
// node (NewCluster). The first has containerd with NRI, weird
// as systemd's unit, as docs/guide/kubernetes.md has it, and a kubelet without an API server. That kubelet
// starts static pods: those whose manifests are in a directory. Their groups, QoS classes, mounts,
// annotations and restarts are kubelet's own.
//
// Pods are in the host's network, for a guest has no other, and their image is imported, for there is
// no registry. A pod's program writes to its disk at once when it is started, for four seconds, and leaves
// what it measured in a directory of the host, under the pod's name and the number of the start.
package node
