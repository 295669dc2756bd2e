// Package kube tests the chart and the manifest of contrib/kubernetes with Helm, kustomize and
// Kubernetes' own types. It is a module of its own, so that weir's go.mod stays small. make kube runs
// it.
package kube
