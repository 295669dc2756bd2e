package owners

import (
	"github.com/weir-io/weir/internal/linux/bpf/refusal"
	"github.com/weir-io/weir/internal/linux/inode"
)

// refused explains why the program was not loaded.
func refused(err error) error {
	e := refusal.Of(inode.Reading, inode.KernelMin, err)
	if refusal.Lacking(err) {
		e.Reason = "the kernel has no BPF iterator over open files (" + err.Error() + ")"
	}
	return e
}
