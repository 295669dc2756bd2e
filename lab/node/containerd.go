package node

import (
	"testing"

	"github.com/weir-io/weir/lab/busybox"
	"github.com/weir-io/weir/lab/containerd"
)

const (
	nriSocket = "/var/run/nri/nri.sock"
	// image is that of the pods' containers: busybox.
	image = "docker.io/library/weir-lab:1"
)

// importImages gives containerd the image of the containers, and the same under the name of the image that it
// holds a pod with.
func (n *Node) importImages(t testing.TB) {
	t.Helper()
	names := []string{n.image, containerd.SandboxImage(t)}
	containerd.Import(t, busybox.Image(t, names...), names...)
}
