// Package node makes a full guest a node of Kubernetes: alone (New), or as a cluster of one node (NewCluster).
//
// A node alone has containerd with NRI, weird as systemd's unit, as docs/guide/kubernetes.md has it, and a
// kubelet without an API server. That kubelet starts static pods: those whose manifests are in a directory.
// Their groups, QoS classes, mounts, annotations and restarts are kubelet's own.
//
// A cluster has an API server and all that belongs to it, as systemd's units. Pods that are not in the host's
// network reach it through a veth pair each.
//
// Images are imported, for there is no registry. A Pod's program writes to its disk at once when it is started,
// for four seconds, and leaves what it measured in a directory of the host, under the pod's name and the number
// of the start.
package node
