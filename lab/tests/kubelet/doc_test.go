// Package kubelet_test has a real kubelet start pods, and looks at whether weir limits them: each QoS class,
// from the first write of the pod's program on, after changes and after restarts of everything that can be
// restarted. Package boot_test boots such a node. "make kubelet" builds kubelet, and runs both. "make cluster" has
// Helm install weir's chart in a cluster of one node.
package kubelet_test
