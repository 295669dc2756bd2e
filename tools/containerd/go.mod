// This module requires containerd's programs, for the lab (lab/internal/kubernetes): Debian's stable release has none that can
// require a plugin of NRI.
module github.com/weir-io/weir/tools/containerd

go 1.26.6

require github.com/containerd/containerd/v2 v2.4.2
