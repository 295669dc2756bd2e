package inode

import (
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

const (
	// Reading is what weir does when it asks for owners, for messages.
	Reading = "read the owners of inodes"
	// KernelMin is the first with iterators over open files.
	KernelMin = "5.8"
)

// Hindrance returns why owners cannot be read, as far as weir can know without asking the kernel;
// nil: no reason is known. The error is a *bpf.Unavailable.
func Hindrance(groups *cgroupfs.FS) error {
	if groups.Root() != "/" {
		return &bpf.Unavailable{Op: Reading, Reason: groups.Root() + " is not the root of this host", Remedy: "only the running kernel knows owners; ask about this host"}
	}
	return bpf.Hindrance("/", Reading, KernelMin)
}
