// Package pod resolves targets of the kind pod:NAMESPACE/NAME and pod:UID: a Kubernetes pod
// that runs on this host, by the group that its containers share.
//
// It asks the runtime over its CRI socket (runtime.v1: ListPodSandbox, PodSandboxStatus,
// ListContainers) for the pod's first process, and uses only the process number from the
// answer. The pod's group is the one above the group that the kernel reports for that process.
// weir limits it only if no process but those of the pod's containers is below it.
package pod
