// What Debian forky has of containerd, for the lab (lab/internal/kubernetes).
module github.com/weir-io/weir/tools/containerd

go 1.26.0

require github.com/containerd/containerd/v2 v2.1.9
