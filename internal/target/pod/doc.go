// Package pod resolves targets of the kind pod:NAMESPACE/NAME and pod:UID: a pod of
// Kubernetes's that runs on this host, by the group that its containers share.
//
// It asks the runtime over its CRI socket (runtime.v1: ListPodSandbox, PodSandboxStatus,
// ListContainers) for the pod's first process, and takes only its number from the answer:
// the group is the one above that in which the kernel has that process. It must have no
// others below it than the pod's containers.
package pod
